// Expressions: sizes given in terms of other sizes, such as "width", "length/2" or "2*width+1".
#pragma once

#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

namespace attnbench::suite {

/// What is wrong with an expression, as one clause for a message.
class ExpressionError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Gives the value of a name, or throws ExpressionError.
using Names = std::function<std::int64_t(const std::string& name)>;

/// Integers and names joined by + - * /, with the usual precedence. Throws ExpressionError where
/// the text is none, a division leaves a remainder, or a value does not fit 64 bits.
std::int64_t evaluate(const std::string& text, const Names& names);

}  // namespace attnbench::suite
