#include "tasks/data/lra/listops.hpp"

#include <algorithm>
#include <array>
#include <tuple>

#include "core/text/printable.hpp"

namespace attnbench::tasks::data::lra {
namespace {

constexpr std::array<std::string_view, 16> symbols{
    "", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "[MIN", "[MAX", "[MED", "[SM", "]"};

/// The arguments of an operator, counted: their order matters to none of the four.
struct Arguments {
  std::array<std::uint32_t, 10> of_value{};
  std::uint32_t count = 0;
  std::uint32_t sum = 0;

  void add(int value) {
    ++of_value[static_cast<std::size_t>(value)];
    ++count;
    sum += static_cast<std::uint32_t>(value);
  }
  /// The argument of `rank`, 0 being the least.
  int ranked(std::uint32_t rank) const {
    int value = 0;
    for (std::uint32_t below = of_value[0]; below <= rank;
         below += of_value[static_cast<std::size_t>(++value)]) {
    }
    return value;
  }
  int under(Token op) const {
    switch (op) {
      case listops_min:
        return ranked(0);
      case listops_max:
        return ranked(count - 1);
      case listops_median:  // the mean of the middle two for even counts, rounded down
        return (ranked((count - 1) / 2) + ranked(count / 2)) / 2;
      default:
        return static_cast<int>(sum % 10);
    }
  }
};

/// Splits share out the hashes of trees: 6/8 train, 1/8 validation, 1/8 test.
Split split_of(const std::vector<Token>& tokens) {
  std::uint64_t hash = 0;
  for (const Token token : tokens) hash = key_of({hash, token});
  const std::uint64_t eighth = hash >> 61;
  return eighth < 6 ? Split::train : eighth == 6 ? Split::validation : Split::test;
}

void expect_between(const char* name, int value, int least, int most) {
  if (value >= least && value <= most) return;
  throw UsageError(std::string("lra.listops: ") + name + " is " + std::to_string(value) +
                   ", expected " + std::to_string(least) + " to " + std::to_string(most));
}

}  // namespace

/// One draw from the root, in the order of the original: a node's children before its operator.
class ListOpsGenerator::Tree {
 public:
  Tree(const ListOpsRules& rules, Random& draws, std::vector<Token>& tokens)
      : rules_(rules), draws_(draws), tokens_(tokens) {
    tokens_.clear();
    value_ = node(1);
    fits_ = fits_ && static_cast<int>(tokens_.size()) >= rules.length_minimum;
  }
  bool fits() const { return fits_; }
  int value() const { return value_; }

 private:
  int node(int depth) {
    // A quarter of the nodes above the last level are operators.
    if (depth == rules_.depth || draws_.below(4) != 0) {
      const auto digit = static_cast<Token>(draws_.below(10));
      add(static_cast<Token>(listops_digit_0 + digit));
      return digit;
    }
    const std::uint32_t count = 2 + draws_.below(static_cast<std::uint32_t>(rules_.arguments - 1));
    const std::size_t place = tokens_.size();
    add(listops_min);
    Arguments arguments;
    // A tree that is too long already is given up: it will not be taken whatever follows.
    for (std::uint32_t i = 0; i < count && fits_; ++i) arguments.add(node(depth + 1));
    if (!fits_) return 0;
    tokens_[place] = static_cast<Token>(listops_min + draws_.below(4));
    add(listops_close);
    return arguments.under(tokens_[place]);
  }

  void add(Token token) {
    tokens_.push_back(token);
    fits_ = static_cast<int>(tokens_.size()) <= rules_.length_maximum;
  }

  const ListOpsRules& rules_;
  Random& draws_;
  std::vector<Token>& tokens_;
  bool fits_ = true;
  int value_ = 0;
};

ListOpsGenerator::ListOpsGenerator(const ListOpsRules& rules)
    : rules_(rules), description_(listops_description()) {
  expect_between("length_minimum", rules.length_minimum, 1, 1 << 20);
  expect_between("length_maximum", rules.length_maximum, rules.length_minimum, 1 << 20);
  expect_between("depth", rules.depth, 1, 64);
  expect_between("arguments", rules.arguments, 2, 64);
  if (rules.rows.total() == 0) throw UsageError("lra.listops: no rows are asked for");
  description_.set_generated({{"generator", "listops 1"},
                              {"source", "generated"},
                              {"length_minimum", rules.length_minimum},
                              {"length_maximum", rules.length_maximum},
                              {"depth", rules.depth},
                              {"arguments", rules.arguments},
                              {"train_examples", rules.rows.train},
                              {"validation_examples", rules.rows.validation},
                              {"test_examples", rules.rows.test},
                              {"data_seed", rules.seed}});
  Row probe;
  make(0, probe);
}

std::uint64_t ListOpsGenerator::cache_bytes() const {
  return rows() * (static_cast<std::uint64_t>(rules_.length_maximum) + 24) + 65'536;
}

void ListOpsGenerator::make(std::uint64_t number, Row& row) {
  std::tie(row.split, row.order) = rules_.rows.place(number);
  row.second.clear();
  Random draws(
      key_of({rules_.seed, 0x6c697374 /* "list" */, static_cast<std::uint64_t>(row.split)}),
      row.order);
  for (int attempt = 0; attempt < 1'000'000; ++attempt) {
    const Tree tree(rules_, draws, row.tokens);
    if (!tree.fits() || split_of(row.tokens) != row.split) continue;
    row.label = tree.value();
    return;
  }
  throw UsageError(
      "lra.listops: no tree of length " + std::to_string(rules_.length_minimum) + " to " +
      std::to_string(rules_.length_maximum) + ", depth " + std::to_string(rules_.depth) +
      " and up to " + std::to_string(rules_.arguments) +
      " arguments in a million draws: widen the lengths, or change depth or arguments");
}

int evaluate_listops(std::span<const Token> tokens) {
  struct Open {
    Token op;
    Arguments arguments;
  };
  std::vector<Open> open;
  int value = -1;  // of the whole, once it is closed
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token token = tokens[i];
    if (value >= 0) {
      throw UsageError("it continues behind its end, at token " + std::to_string(i + 1));
    }
    if (token >= listops_min && token <= listops_sum) {
      open.push_back({token, {}});
      continue;
    }
    int argument = 0;
    if (token == listops_close) {
      if (open.empty()) {
        throw UsageError("its brackets are unbalanced: ] at token " + std::to_string(i + 1) +
                         " closes nothing");
      }
      if (open.back().arguments.count == 0) {
        throw UsageError("an operator has no arguments, at token " + std::to_string(i + 1));
      }
      argument = open.back().arguments.under(open.back().op);
      open.pop_back();
    } else if (token >= listops_digit_0 && token < listops_min) {
      argument = token - listops_digit_0;
    } else {
      throw UsageError("token " + std::to_string(i + 1) + " has the id " + std::to_string(token) +
                       ", which is not a symbol");
    }
    if (open.empty()) {
      value = argument;
    } else {
      open.back().arguments.add(argument);
    }
  }
  if (tokens.empty()) throw UsageError("it has no tokens");
  if (!open.empty()) {
    throw UsageError("its brackets are unbalanced: " + std::to_string(open.size()) +
                     " operators are not closed");
  }
  return value;
}

void parse_listops(std::string_view text, std::vector<Token>& tokens) {
  tokens.clear();
  std::int64_t round = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == ' ') {
      ++at;
      continue;
    }
    const std::string_view symbol = text.substr(at, text.find(' ', at) - at);
    at += symbol.size();
    if (symbol == "(" || symbol == ")") {
      round += symbol == "(" ? 1 : -1;
      if (round < 0) break;
      continue;
    }
    const auto found = std::find(symbols.begin() + 1, symbols.end(), symbol);
    if (found == symbols.end()) {
      throw UsageError("\"" + text::quotable(symbol, 40) +
                       "\" is not one of 0 to 9, [MIN, [MAX, [MED, [SM, ], ( and )");
    }
    tokens.push_back(static_cast<Token>(found - symbols.begin()));
  }
  if (round != 0) throw UsageError("its round brackets are unbalanced: it was cut, perhaps");
}

std::string listops_text(std::span<const Token> tokens) {
  std::string text;
  for (const Token token : tokens) {
    if (!text.empty()) text += ' ';
    text += symbols.at(token);
  }
  return text;
}

DataDescription listops_description() {
  DataDescription description;
  description.task = "lra.listops";
  description.vocabulary = listops_vocabulary;
  for (int digit = 0; digit < 10; ++digit) description.classes.push_back(std::to_string(digit));
  return description;
}

}  // namespace attnbench::tasks::data::lra
