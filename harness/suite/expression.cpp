#include "harness/suite/expression.hpp"

#include <cctype>
#include <charconv>

#include "core/text/printable.hpp"

namespace attnbench::suite {
namespace {

class Evaluator {
 public:
  Evaluator(const std::string& text, const Names& names) : text_(text), names_(names) {}

  std::int64_t value() {
    const std::int64_t result = sum();
    if (peek() != '\0') fail(std::string("does not expect '") + peek() + "'");
    return result;
  }

 private:
  char peek() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  bool accept(char wanted) {
    if (peek() != wanted) return false;
    ++at_;
    return true;
  }

  std::int64_t sum() {
    std::int64_t result = product();
    for (;;) {
      if (accept('+')) {
        check(__builtin_add_overflow(result, product(), &result));
      } else if (accept('-')) {
        check(__builtin_sub_overflow(result, product(), &result));
      } else {
        return result;
      }
    }
  }

  std::int64_t product() {
    std::int64_t result = factor();
    for (;;) {
      if (accept('*')) {
        check(__builtin_mul_overflow(result, factor(), &result));
      } else if (accept('/')) {
        result = divided(result, factor());
      } else {
        return result;
      }
    }
  }

  std::int64_t divided(std::int64_t dividend, std::int64_t divisor) const {
    if (divisor == 0) fail("divides by zero");
    if (divisor == -1) fail("divides by -1");
    if (dividend % divisor != 0) {
      fail("is no integer: " + std::to_string(dividend) + " is not a multiple of " +
           std::to_string(divisor));
    }
    return dividend / divisor;
  }

  std::int64_t factor() {
    const char next = peek();
    const std::size_t begin = at_;
    if (std::isdigit(static_cast<unsigned char>(next))) {
      std::int64_t number = 0;
      const char* end = text_.data() + text_.size();
      const auto [stop, error] = std::from_chars(text_.data() + at_, end, number);
      at_ = static_cast<std::size_t>(stop - text_.data());
      check(error != std::errc());
      return number;
    }
    while (at_ < text_.size() && is_name(text_[at_])) ++at_;
    if (at_ == begin) {
      fail(next == '\0' ? "ends too early" : std::string("does not expect '") + next + "'");
    }
    return names_(text_.substr(begin, at_ - begin));
  }

  static bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  }

  void check(bool overflowed) const {
    if (overflowed) fail("overflows 64 bits");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw ExpressionError("the size \"" + result::quotable(text_) + "\" " + what);
  }

  const std::string& text_;
  const Names& names_;
  std::size_t at_ = 0;
};

}  // namespace

std::int64_t evaluate(const std::string& text, const Names& names) {
  return Evaluator(text, names).value();
}

}  // namespace attnbench::suite
