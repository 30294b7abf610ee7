#include "tasks/data/lra/listops.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>
#include <sstream>

#include "tasks/data/cache.hpp"
#include "tasks/data/prepare.hpp"
#include "tests/tasks/data/support.hpp"

using namespace attnbench;
using namespace attnbench::tasks::data;
using namespace attnbench::tasks::data::lra;
using namespace attnbench::test;

namespace {

/// The value of an expression by recursion over its text and sorted arguments: shares nothing with
/// the generator or with evaluate_listops.
int value_of(std::istringstream& words) {
  std::string word;
  words >> word;
  if (word[0] != '[') return std::stoi(word);
  std::vector<int> arguments;
  while (words >> std::ws && words.peek() != ']') arguments.push_back(value_of(words));
  std::string close;
  words >> close;
  std::sort(arguments.begin(), arguments.end());
  const std::size_t n = arguments.size();
  if (word == "[MIN") return arguments.front();
  if (word == "[MAX") return arguments.back();
  if (word == "[MED") return (arguments[(n - 1) / 2] + arguments[n / 2]) / 2;
  int sum = 0;
  for (const int argument : arguments) sum += argument;
  return sum % 10;
}

int value_of(const std::vector<Token>& tokens) {
  std::istringstream words(listops_text(tokens));
  const int value = value_of(words);
  std::string rest;
  return words >> rest ? -1 : value;
}

std::vector<Token> parsed(const std::string& text) {
  std::vector<Token> tokens;
  parse_listops(text, tokens);
  return tokens;
}

int evaluated(const std::string& text) { return evaluate_listops(parsed(text)); }

ListOpsRules small_rules() {
  ListOpsRules rules;
  rules.length_minimum = 4;
  rules.length_maximum = 30;
  rules.depth = 4;
  rules.arguments = 4;
  rules.rows = {2'000, 300, 300};
  return rules;
}

}  // namespace

TEST_CASE("ListOps are evaluated as they are defined", "[lra][listops]") {
  CHECK(evaluated("7") == 7);
  CHECK(evaluated("[MIN 4 2 9 ]") == 2);
  CHECK(evaluated("[MAX 4 2 9 ]") == 9);
  CHECK(evaluated("[MED 4 2 9 ]") == 4);
  CHECK(evaluated("[MED 4 2 9 7 ]") == 5);  // 5.5, towards zero
  CHECK(evaluated("[SM 4 2 9 ]") == 5);
  CHECK(evaluated("( ( ( [MAX 2 ) ( ( ( [SM 9 ) 4 ) ] ) ) ] )") == 3);
  CHECK(evaluated("[MAX 2 9 [MIN 4 7 ] 0 ]") == 9);
}

TEST_CASE("text that is no expression is refused with the reason", "[lra][listops]") {
  CHECK(says(refusal([] { evaluated(""); }), {"no tokens"}));
  CHECK(says(refusal([] { evaluated("[MAX 1 2"); }), {"unbalanced", "1 operators"}));
  CHECK(says(refusal([] { evaluated("[MAX 1 ] ]"); }), {"behind its end", "token 4"}));
  CHECK(says(refusal([] { evaluated("] 1"); }), {"unbalanced", "token 1"}));
  CHECK(says(refusal([] { evaluated("[MAX ]"); }), {"no arguments"}));
  CHECK(says(refusal([] { evaluated("1 2"); }), {"behind its end"}));
  CHECK(says(refusal([] { parsed("[FIRST 1 2 ]"); }), {"[FIRST"}));
  CHECK(says(refusal([] { parsed("( ( [MAX 1 ) ]"); }), {"round brackets", "cut"}));
  CHECK(says(refusal([] { parsed(") ("); }), {"round brackets"}));
}

TEST_CASE("generated ListOps have their value as label and their length in the window",
          "[lra][listops]") {
  ListOpsRules rules;
  rules.rows = full_counts() ? SplitCounts{96'000, 2'000, 2'000} : SplitCounts{2'000, 50, 50};
  ListOpsGenerator generator(rules);
  Row row;
  std::size_t shortest = 10'000;
  std::size_t longest = 0;
  for (std::uint64_t number = 0; number < generator.rows(); ++number) {
    generator.make(number, row);
    shortest = std::min(shortest, row.tokens.size());
    longest = std::max(longest, row.tokens.size());
    REQUIRE(value_of(row.tokens) == row.label);
    REQUIRE(evaluate_listops(row.tokens) == row.label);
  }
  CHECK(shortest >= 501);
  CHECK(longest <= 1999);
  // The window is used, not only kept to.
  CHECK(shortest < 520);
  CHECK(longest > 1980);
}

TEST_CASE("generated ListOps have the statistics of the original", "[lra][listops][statistics]") {
  // From 100,000 rows of the original's rule, written a second time in Python with its own random
  // numbers and an evaluation by sorting.
  constexpr double reference_rows = 100'000;
  const std::array<double, 10> share{.1704, .0896, .0785, .0833, .0897,
                                     .0854, .0775, .0716, .0880, .1662};
  ListOpsRules rules;
  rules.rows = {full_counts() ? 100'000u : 10'000u, 0, 0};
  rules.seed = 3;
  ListOpsGenerator generator(rules);
  const auto count = static_cast<double>(generator.rows());
  std::array<double, 10> labels{};
  double length = 0, length_squares = 0, operators = 0, operator_squares = 0;
  Row row;
  for (std::uint64_t number = 0; number < generator.rows(); ++number) {
    generator.make(number, row);
    ++labels[static_cast<std::size_t>(row.label)];
    const auto tokens = static_cast<double>(row.tokens.size());
    const auto closes =
        static_cast<double>(std::count(row.tokens.begin(), row.tokens.end(), listops_close));
    length += tokens / count;
    length_squares += tokens * tokens / count;
    operators += closes / count;
    operator_squares += closes * closes / count;
  }
  // Both sides are samples.
  const double samples = 1 / count + 1 / reference_rows;
  for (std::size_t label = 0; label < 10; ++label) {
    INFO("label " << label);
    const double error = std::sqrt(share[label] * (1 - share[label]) * samples);
    CHECK(std::abs(labels[label] / count - share[label]) < 3 * error);
  }
  const double length_error = std::sqrt((length_squares - length * length) * samples);
  CHECK(std::abs(length - 1034.75) < 3 * length_error);
  const double operator_error = std::sqrt((operator_squares - operators * operators) * samples);
  CHECK(std::abs(operators - 147.20) < 3 * operator_error);
}

TEST_CASE("a row is made alone, and another seed, split or number gives another",
          "[lra][listops]") {
  ListOpsGenerator generator(small_rules());
  const std::vector<Row> rows = rows_of(generator);
  Row alone;
  for (const std::uint64_t number : {2'599u, 5u, 2'000u, 0u}) {
    generator.make(number, alone);
    CHECK(alone.tokens == rows[number].tokens);
    CHECK(alone.label == rows[number].label);
  }
  CHECK(rows[1'999].split == Split::train);
  CHECK(rows[2'000].split == Split::validation);
  CHECK(rows[2'299].order == 299);
  CHECK(rows[2'300].split == Split::test);
  ListOpsRules other = small_rules();
  other.seed = 1;
  ListOpsGenerator another(other);
  CHECK(rows_of(another)[0].tokens != rows[0].tokens);
  CHECK(another.description().source_hash != generator.description().source_hash);
}

TEST_CASE("no small tree stands in two splits", "[lra][listops]") {
  ListOpsRules rules = small_rules();
  rules.length_maximum = 6;  // some thousand trees: nearly all are drawn several times
  ListOpsGenerator generator(rules);
  std::array<std::set<std::vector<Token>>, 3> trees;
  for (const Row& row : rows_of(generator)) {
    trees[static_cast<std::size_t>(row.split)].insert(row.tokens);
  }
  CHECK(trees[0].size() < 2'000);  // twice in one split, as said
  for (const auto& tree : trees[0]) {
    CHECK((trees[1].count(tree) == 0 && trees[2].count(tree) == 0));
  }
  for (const auto& tree : trees[1]) CHECK(trees[2].count(tree) == 0);
}

TEST_CASE("small ListOps keep to depth and arguments", "[lra][listops]") {
  ListOpsGenerator generator(small_rules());
  for (const Row& row : rows_of(generator)) {
    REQUIRE(row.tokens.size() >= 4);
    REQUIRE(row.tokens.size() <= 30);
    std::vector<int> arguments{0};
    std::size_t deepest = 0;
    for (const Token token : row.tokens) {
      if (token == listops_close) {
        REQUIRE(arguments.back() >= 2);
        REQUIRE(arguments.back() <= 4);
        arguments.pop_back();
        continue;
      }
      ++arguments.back();
      deepest = std::max(deepest, arguments.size());
      if (token >= listops_min) arguments.push_back(0);
    }
    REQUIRE(deepest <= 4);
  }
}

TEST_CASE("rules of ListOps that make no sense are refused", "[lra][listops]") {
  const auto refused = [](auto change) {
    ListOpsRules rules = small_rules();
    change(rules);
    return refusal([&] { ListOpsGenerator generator(rules); });
  };
  CHECK(says(refused([](ListOpsRules& r) { r.length_minimum = 0; }), {"length_minimum is 0"}));
  CHECK(says(refused([](ListOpsRules& r) { r.length_maximum = 3; }), {"length_maximum is 3"}));
  CHECK(says(refused([](ListOpsRules& r) { r.depth = 0; }), {"depth is 0"}));
  CHECK(says(refused([](ListOpsRules& r) { r.arguments = 1; }), {"arguments is 1"}));
  CHECK(says(refused([](ListOpsRules& r) { r.rows = {}; }), {"no rows"}));
  CHECK(says(refused([](ListOpsRules& r) { r.depth = 1; }), {"no tree", "widen"}));
}

TEST_CASE("ListOps of LRA's size are the same bytes on 1 and 2 threads", "[lra][listops]") {
  const TemporaryFolder folder;
  ListOpsRules rules;
  rules.rows = full_counts() ? SplitCounts{96'000, 2'000, 2'000} : SplitCounts{4'000, 200, 200};
  for (int threads = 1; threads <= 2; ++threads) {
    ListOpsGenerator generator(rules);
    PrepareOptions options;
    options.threads = threads;
    prepare(generator, folder / ("threads" + std::to_string(threads) + ".lra"), options);
  }
  CHECK(read_file(folder / "threads1.lra") == read_file(folder / "threads2.lra"));
  const Cache cache(folder / "threads1.lra");
  CHECK(cache.facts(Split::train).majority() == Approx(0.170).margin(0.03));
}
