// Sizes of an attention call: expressions over other sizes, and how sizes follow from each other.
//
// A size of 0 stands for "derived":
//   width            = heads * head_dim
//   head_dim         = width / heads, or 64 where width is 0 as well
//   value_dim        = head_dim
//   key_dim          = head_dim
//   kv_heads         = heads
//   key_length       = length
//   latents_total    = latents_per_head * heads
//   latents_per_head = latents_total / heads
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

namespace attnbench {

/// The greatest size of a cell: no machine has memory or time for more.
constexpr std::int64_t max_size = std::int64_t{1} << 20;        ///< of batch, heads, widths, …
constexpr std::int64_t longest_length = std::int64_t{1} << 26;  ///< tokens, and keys of a window

/// What is wrong with an expression, as one clause for a message.
class ExpressionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Gives the value of a name, or throws ExpressionError.
using SizeOf = std::function<std::int64_t(const std::string& name)>;

/// Integers and names joined by + - * /, with the usual precedence: "width", "length/2",
/// "2*width+1". Throws ExpressionError for text that is not an expression, for a division with a
/// remainder, and for a value that does not fit 64 bits.
std::int64_t evaluate(const std::string& expression, const SizeOf& size_of);

/// A size that contradicts others, and why.
struct SizeFault {
  std::string size;
  std::string reason;
};

class Sizes {
 public:
  /// Adds a size; `value` is an integer or an expression of other sizes.
  void add(const std::string& name, std::variant<std::int64_t, std::string> value);
  bool has(const std::string& name) const { return values_.count(name) != 0; }

  // All of these throw ExpressionError, also where an expression depends on itself.

  /// The size as it was given: expressions are evaluated, 0 stays 0.
  std::int64_t given(const std::string& name);
  /// The size with 0 replaced by the derived size; 0 where nothing derives it.
  std::int64_t value(const std::string& name);
  /// An expression of derived sizes.
  std::int64_t evaluated(const std::string& expression);
  /// Sizes that do not fit together: width and head_dim, kv_heads, and latents against heads.
  std::vector<SizeFault> contradictions();

 private:
  std::int64_t given_or_zero(const std::string& name) { return has(name) ? given(name) : 0; }

  std::map<std::string, std::variant<std::int64_t, std::string>> values_;
  std::set<std::string> open_;  ///< names being evaluated, to find circles
};

}  // namespace attnbench
