#include "harness/apply/npy_header.hpp"

#include <cctype>
#include <set>
#include <stdexcept>

#include "core/text/printable.hpp"

namespace attnbench::npy {
namespace {

/// Reads the literal from left to right; every complaint is a std::invalid_argument.
class Literal {
 public:
  explicit Literal(const std::string& text) : text_(text) {}

  /// Whether the next thing is `letter`, which is then behind us.
  bool take(char letter) {
    skip_space();
    if (at_end() || text_[place_] != letter) return false;
    ++place_;
    return true;
  }

  void expect(char letter) {
    if (!take(letter)) complain(std::string("expected '") + letter + "'");
  }

  bool at_end() const { return place_ >= text_.size(); }

  void expect_end() {
    skip_space();
    if (!at_end()) complain("something follows the dictionary");
  }

  std::string quoted() {
    skip_space();
    const char quote = at_end() ? ' ' : text_[place_];
    if (quote != '\'' && quote != '"') complain("expected a word in quotes");
    const std::size_t end = text_.find(quote, place_ + 1);
    if (end == std::string::npos) complain("a quote is not closed");
    const std::string word = text_.substr(place_ + 1, end - place_ - 1);
    place_ = end + 1;
    return word;
  }

  bool truth() {
    skip_space();
    for (const auto& [word, value] : {std::pair{"True", true}, std::pair{"False", false}}) {
      if (text_.compare(place_, std::string(word).size(), word) != 0) continue;
      place_ += std::string(word).size();
      return value;
    }
    complain("expected True or False");
  }

  std::int64_t size() {
    skip_space();
    std::string digits;
    while (!at_end() && std::isdigit(static_cast<unsigned char>(text_[place_])) != 0) {
      digits += text_[place_++];
    }
    if (digits.empty() || digits.size() > 18) {
      complain("expected a number of the shape, of at most 18 digits,");
    }
    if (!at_end() && text_[place_] == 'L') ++place_;  // as Python 2 wrote long integers
    return std::stoll(digits);
  }

  Shape shape() {
    Shape sizes;
    expect('(');
    while (!take(')')) {
      sizes.push_back(size());
      if (take(',')) continue;
      expect(')');
      break;
    }
    return sizes;
  }

  /// The rest, as it stands.
  std::string rest() const { return text_.substr(place_); }

 private:
  void skip_space() {
    while (!at_end() && std::isspace(static_cast<unsigned char>(text_[place_])) != 0) ++place_;
  }

  [[noreturn]] void complain(const std::string& what) const {
    throw std::invalid_argument(what + " at character " + std::to_string(place_ + 1) +
                                " of the header");
  }

  const std::string& text_;
  std::size_t place_ = 0;
};

}  // namespace

HeaderText parse_header(const std::string& text) {
  HeaderText header;
  std::set<std::string> seen;
  Literal literal(text);
  literal.expect('{');
  while (!literal.take('}')) {
    const std::string key = literal.quoted();
    if (!seen.insert(key).second)
      throw std::invalid_argument("'" + result::quotable(key) + "' stands there twice");
    literal.expect(':');
    if (key == "descr") {
      if (literal.take('[')) {
        header.descr = "[" + literal.rest();
        return header;  // a type with fields is refused whatever follows
      }
      header.descr = literal.quoted();
    } else if (key == "fortran_order") {
      header.fortran_order = literal.truth();
    } else if (key == "shape") {
      header.shape = literal.shape();
    } else {
      throw std::invalid_argument("'" + result::quotable(key) +
                                  "' is none of descr, fortran_order, shape");
    }
    if (literal.take(',')) continue;
    literal.expect('}');
    break;
  }
  literal.expect_end();
  for (const char* key : {"descr", "fortran_order", "shape"}) {
    if (seen.count(key) == 0) throw std::invalid_argument(std::string("'") + key + "' is missing");
  }
  return header;
}

std::string header_text(Element element, const Shape& shape) {
  static const char* const types[] = {"<f4", "<f8", "<i8", "|b1", "|u1"};
  std::string sizes;
  for (const std::int64_t size : shape) {
    sizes += (sizes.empty() ? "" : ", ") + std::to_string(size);
  }
  if (shape.size() == 1) sizes += ",";
  return std::string("{'descr': '") + types[static_cast<int>(element)] +
         "', 'fortran_order': False, 'shape': (" + sizes + "), }";
}

}  // namespace attnbench::npy
