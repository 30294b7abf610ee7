#include "core/sizes.hpp"

#include <cctype>
#include <charconv>

#include "core/text/printable.hpp"
#include "core/text/spelling.hpp"

namespace attnbench {
namespace {

class Evaluator {
 public:
  Evaluator(const std::string& text, const SizeOf& size_of) : text_(text), size_of_(size_of) {}

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
      fail("is not an integer: " + std::to_string(dividend) + " is not a multiple of " +
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
    return size_of_(text_.substr(begin, at_ - begin));
  }

  static bool is_name(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  }

  void check(bool overflowed) const {
    if (overflowed) fail("overflows 64 bits");
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw ExpressionError("the size \"" + text::quotable(text_) + "\" " + what);
  }

  const std::string& text_;
  const SizeOf& size_of_;
  std::size_t at_ = 0;
};

std::string shown_size(const char* name, std::int64_t size) {
  return std::string(name) + " " + std::to_string(size);
}

}  // namespace

std::int64_t evaluate(const std::string& expression, const SizeOf& size_of) {
  return Evaluator(expression, size_of).value();
}

void Sizes::add(const std::string& name, std::variant<std::int64_t, std::string> value) {
  values_[name] = std::move(value);
}

std::int64_t Sizes::evaluated(const std::string& expression) {
  return evaluate(expression, [this](const std::string& name) { return value(name); });
}

std::int64_t Sizes::given(const std::string& name) {
  const auto found = values_.find(name);
  if (found == values_.end()) {
    std::vector<std::string> known;
    for (const auto& [each, ignored] : values_) known.push_back(each);
    throw ExpressionError("there is no size \"" + name + "\" here; " +
                          text::suggestion(name, known));
  }
  if (const auto* integer = std::get_if<std::int64_t>(&found->second)) return *integer;
  if (!open_.insert(name).second) {
    throw ExpressionError("the size \"" + name + "\" depends on itself");
  }
  try {
    const std::int64_t size = evaluated(std::get<std::string>(found->second));
    open_.erase(name);
    return size;
  } catch (...) {
    open_.erase(name);
    throw;
  }
}

std::int64_t Sizes::value(const std::string& name) {
  constexpr std::int64_t default_head_dim = 64;
  const std::int64_t size = given(name);
  if (size != 0) return size;
  if ((name == "value_dim" || name == "key_dim") && has("head_dim")) return value("head_dim");
  if (name == "key_length" && has("length")) return value("length");
  if (!has("heads")) return size;
  if (name == "head_dim") {
    return given_or_zero("width") == 0 ? default_head_dim : evaluated("width/heads");
  }
  if (name == "width" && has("head_dim")) return evaluated("heads*head_dim");
  if (name == "kv_heads") return value("heads");
  if (name == "latents_per_head" && given_or_zero("latents_total") != 0) {
    return evaluated("latents_total/heads");
  }
  if (name == "latents_total" && given_or_zero("latents_per_head") != 0) {
    return evaluated("latents_per_head*heads");
  }
  return size;
}

std::vector<SizeFault> Sizes::contradictions() {
  std::vector<SizeFault> faults;
  const std::int64_t heads = has("heads") ? value("heads") : 0;
  if (heads < 1) return faults;
  const std::string with_heads = shown_size("heads", heads);
  const std::int64_t width = given_or_zero("width");
  const std::int64_t head_dim = given_or_zero("head_dim");
  if (width > 0 && width % heads != 0) {
    faults.push_back({"width", shown_size("width", width) + " is not a multiple of " + with_heads +
                                   "; each head takes an equal share of the width"});
  } else if (width > 0 && head_dim > 0 && head_dim != width / heads) {
    faults.push_back({"head_dim", shown_size("width", width) + " and " +
                                      shown_size("head_dim", head_dim) + " disagree with " +
                                      with_heads +
                                      "; expected width = heads * head_dim, or one of the two"});
  }
  const std::int64_t kv_heads = given_or_zero("kv_heads");
  if (kv_heads > 0 && heads % kv_heads != 0) {
    faults.push_back({"kv_heads", shown_size("kv_heads", kv_heads) + " does not divide " +
                                      with_heads + "; each serves an equal number of query heads"});
  }
  const std::int64_t total = given_or_zero("latents_total");
  const std::int64_t per_head = given_or_zero("latents_per_head");
  if (total > 0 && total % heads != 0) {
    faults.push_back({"latents_total", shown_size("latents_total", total) +
                                           " is not a multiple of " + with_heads +
                                           "; each head takes an equal share"});
  } else if (total > 0 && per_head > 0 && per_head != total / heads) {
    faults.push_back({"latents_per_head", shown_size("latents_total", total) + " and " +
                                              shown_size("latents_per_head", per_head) +
                                              " disagree with " + with_heads +
                                              "; expected one of the two"});
  }
  return faults;
}

}  // namespace attnbench
