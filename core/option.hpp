// Options: what a user may choose for a mechanism or a task, and the values chosen.
//
// An `Option` is a declaration (name, type, default, range, meaning). `Options` holds values that
// were checked against declarations, with every default filled in. Neither depends on JSON or
// torch, so plugins, kernel tests and the worker share them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace attnbench {

/// Keys a query at position t sees: s with t - left <= s <= t + right. The flash-attn convention.
struct Window {
  std::int64_t left = 0;
  std::int64_t right = 0;
  bool operator==(const Window&) const = default;
};

/// A window of `keys` keys, the token itself included: all before the token when causal, else half
/// on each side, the larger half on the left.
Window window_of(std::int64_t keys, bool causal);

using OptionValue = std::variant<std::int64_t, double, bool, std::string, Window>;

enum class OptionType { integer, number, boolean, text, window };

/// The declaration of one option. The functions below make one of each type.
struct Option {
  std::string name;  ///< the key in suites and on the command line
  OptionType type = OptionType::integer;
  OptionValue fallback = {};              ///< the default; its alternative must match `type`
  std::string meaning = {};               ///< one sentence, units included
  std::optional<double> minimum = {};     ///< inclusive, for integer and number
  std::optional<double> maximum = {};     ///< inclusive, for integer and number
  std::vector<std::string> choices = {};  ///< for text: the valid words; empty = any text

  static Option integer(std::string name, std::int64_t fallback, std::string meaning,
                        std::optional<double> minimum = {}, std::optional<double> maximum = {}) {
    return {std::move(name), OptionType::integer, fallback, std::move(meaning), minimum, maximum};
  }
  static Option number(std::string name, double fallback, std::string meaning,
                       std::optional<double> minimum = {}, std::optional<double> maximum = {}) {
    return {std::move(name), OptionType::number, fallback, std::move(meaning), minimum, maximum};
  }
  static Option boolean(std::string name, bool fallback, std::string meaning) {
    return {std::move(name), OptionType::boolean, fallback, std::move(meaning)};
  }
  /// The first of `choices` is the default.
  static Option text(std::string name, std::vector<std::string> choices, std::string meaning) {
    std::string fallback = choices.front();
    return {std::move(name),   OptionType::text, std::move(fallback), std::move(meaning), {}, {},
            std::move(choices)};
  }
};

/// Values by name. Reading an undeclared name, or a value as another type, throws std::logic_error
/// that names both.
class Options {
 public:
  Options() = default;
  explicit Options(std::map<std::string, OptionValue> values) : values_(std::move(values)) {}

  /// Checks `said` against `declared`, fills in defaults and widens integers to numbers. Throws
  /// UsageError for an unknown name (naming the closest), a wrong type or a value out of range.
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

/// The word in `known` with the smallest edit distance to `word`, or empty if none is close.
std::string closest_word(const std::string& word, const std::vector<std::string>& known);
/// Words for messages: "; did you mean WORD?" with the closest word, or empty; and "a, b, c".
std::string did_you_mean(const std::string& word, const std::vector<std::string>& known);
std::string word_list(const std::vector<std::string>& words);

/// The value as JSON writes it, for messages.
std::string to_string(const OptionValue& value);
const char* to_string(OptionType type);

}  // namespace attnbench
