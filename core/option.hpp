// Options: what a mechanism or a task lets its user choose, and the values chosen.
//
// An `Option` is the declaration (name, type, default, range, meaning); `Options` are values that
// have been held against such declarations, every default filled in. Neither knows JSON nor torch:
// plugins, kernels' tests and the worker share them as plain data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace attnbench {

/// Keys a query at position t sees: s with t - left <= s <= t + right. The flash-attn convention.
struct Window {
  std::int64_t left = 0;
  std::int64_t right = 0;
  bool operator==(const Window&) const = default;
};

using OptionValue = std::variant<std::int64_t, double, bool, std::string, Window>;

enum class OptionType { integer, number, boolean, text, window };

/// The declaration of one option.
struct Option {
  std::string name;  ///< the key in suites and on the command line
  OptionType type = OptionType::integer;
  OptionValue fallback;              ///< the default; its alternative must match `type`
  std::string meaning;               ///< one sentence, units included
  std::optional<double> minimum;     ///< inclusive, for integer and number
  std::optional<double> maximum;     ///< inclusive, for integer and number
  std::vector<std::string> choices;  ///< for text: the valid words; empty = any text
};

/// Values by name. Reading a name that is not there, or as another type, is a programming error
/// and throws std::logic_error naming both.
class Options {
 public:
  Options() = default;
  explicit Options(std::map<std::string, OptionValue> values) : values_(std::move(values)) {}

  /// `said` held against `declared`: defaults filled in, integers widened to numbers.
  /// Throws UsageError for an unknown name (naming the closest), a wrong type or a value out of
  /// range.
  static Options resolve(const std::vector<Option>& declared,
                         const std::map<std::string, OptionValue>& said);

  bool has(const std::string& name) const { return values_.count(name) != 0; }
  std::int64_t integer(const std::string& name) const;
  double number(const std::string& name) const;
  bool boolean(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  Window window(const std::string& name) const;

  void set(const std::string& name, OptionValue value) { values_[name] = std::move(value); }
  const std::map<std::string, OptionValue>& values() const { return values_; }

 private:
  std::map<std::string, OptionValue> values_;
};

/// The word of `known` with the smallest edit distance to `word`, or empty if none is near.
std::string closest_word(const std::string& word, const std::vector<std::string>& known);

/// For messages: the value as JSON would write it.
std::string to_string(const OptionValue& value);
const char* to_string(OptionType type);

}  // namespace attnbench
