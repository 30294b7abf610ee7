// The six exercises checked against mad-lab's rules, example by example and by their statistics.
#include "tasks/mad/exercise.hpp"

#include <cmath>
#include <map>
#include <set>

#include "tests/support/catch.hpp"

using namespace attnbench::tasks::mad;
using attnbench::tasks::training::Question;

namespace {

constexpr std::uint64_t exercise_seed = 3;

Example exercise_example(const Rules& rules, std::uint64_t number, Split split = Split::test) {
  return make_example(rules, exercise_seed, split, number);
}

std::size_t index_of(std::int64_t place) { return static_cast<std::size_t>(place); }

/// Five standard errors of a share counted over `count`.
double bar(double share, double count) { return 5 * std::sqrt(share * (1 - share) / count); }

/// Whether every question's answer is the token after it and the token `distance` before it.
bool answers_match(const Example& example) {
  for (const Question& question : example.questions) {
    if (example.tokens[index_of(question.position + 1)] != question.answer) return false;
    if (example.tokens[index_of(question.position - question.distance)] != question.answer)
      return false;
    if (question.distance < 1) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("in-context recall asks for each repeated key", "[mad]") {
  const Rules rules = baseline(Exercise::in_context_recall);
  CHECK((rules.vocabulary == 16 && rules.length == 128 && rules.train == 12800));
  std::map<std::int64_t, int> values;
  double asked = 0;
  const int examples = 4000;
  for (int i = 0; i < examples; ++i) {
    const Example example = exercise_example(rules, static_cast<std::uint64_t>(i));
    REQUIRE(example.tokens.size() == 128);
    std::map<std::int64_t, std::int64_t> value_of;
    std::vector<std::int64_t> wanted;
    for (std::size_t t = 0; t < 128; t += 2) {
      const std::int64_t key = example.tokens[t];
      REQUIRE((key >= 0 && key < 8 && example.tokens[t + 1] >= 8 && example.tokens[t + 1] < 16));
      const auto [found, is_new] = value_of.emplace(key, example.tokens[t + 1]);
      REQUIRE(found->second == example.tokens[t + 1]);
      if (!is_new) wanted.push_back(static_cast<std::int64_t>(t));
      if (is_new) ++values[found->second];
    }
    REQUIRE(example.questions.size() == wanted.size());
    for (std::size_t q = 0; q < wanted.size(); ++q) {
      REQUIRE(example.questions[q].position == wanted[q]);
    }
    REQUIRE(wanted.back() == 126);  // the last pair's key was there
    REQUIRE(answers_match(example));
    asked += static_cast<double>(wanted.size());
  }
  // 63 keys drawn among 8, and one more that is known: 64 less the keys that are there.
  const double known = 8 * (1 - std::pow(7.0 / 8, 63));
  CHECK(asked / examples == Approx(64 - known).epsilon(0.001));
  // Chance: a constant answer is right once in eight.
  CHECK(answers(rules) == 8);
  double all = 0;
  for (const auto& [value, count] : values) all += count;
  CHECK(values.size() == 8);
  for (const auto& [value, count] : values) {
    CHECK(std::abs(count / all - 0.125) < bar(0.125, all));
  }
}

TEST_CASE("noisy recall has noise in a fifth of its pairs", "[mad]") {
  const Rules rules = baseline(Exercise::noisy_recall);
  CHECK((rules.vocabulary == 32 && rules.noise_tokens == 16 && rules.noise == 0.2));
  CHECK(answers(rules) == 8);
  double noise = 0;
  const int examples = 4000;
  for (int i = 0; i < examples; ++i) {
    const Example example = exercise_example(rules, static_cast<std::uint64_t>(i));
    for (std::size_t t = 0; t < 128; t += 2) {
      const bool noisy = example.tokens[t] >= 16;
      REQUIRE(noisy == (example.tokens[t + 1] >= 16));
      noise += noisy;
    }
    REQUIRE(answers_match(example));
    REQUIRE(example.questions.back().position == 126);
  }
  // The last of 64 pairs and one other are never noise.
  const double pairs = 62.0 * examples;
  CHECK(std::abs(noise / pairs - 0.2) < bar(0.2, pairs));
  Rules loud = rules;
  loud.noise = 0.99;
  for (std::uint64_t i = 0; i < 300; ++i) REQUIRE(answers_match(exercise_example(loud, i)));
}

TEST_CASE("fuzzy recall has motifs of different tokens, and asks by the longest", "[mad]") {
  const Rules rules = baseline(Exercise::fuzzy_recall);
  CHECK((rules.vocabulary == 16 && rules.length == 128 && rules.motif == 3));
  CHECK(answers(rules) == 8);
  for (const Split split : {Split::train, Split::test}) {
    std::map<std::size_t, int> key_sizes, value_sizes;
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const Example example = exercise_example(rules, i, split);
      REQUIRE(example.tokens.size() == 128);
      REQUIRE(answers_match(example));
      REQUIRE(example.questions.back().position == 126);
      // Runs of keys (0 to 6) and values (7 to 14) after the padding (15).
      std::size_t t = 0;
      while (example.tokens[t] == 15) ++t;
      REQUIRE(t >= 1);
      while (t < 128) {
        std::set<std::int64_t> key, value;
        for (; t < 128 && example.tokens[t] < 7; ++t) REQUIRE(key.insert(example.tokens[t]).second);
        for (; t < 128 && example.tokens[t] >= 7; ++t) {
          REQUIRE((example.tokens[t] < 15 && value.insert(example.tokens[t]).second));
        }
        REQUIRE((key.size() <= 3 && value.size() <= 3 && !key.empty() && !value.empty()));
        ++key_sizes[key.size()];
        ++value_sizes[value.size()];
      }
    }
    double keys = 0, values = 0;
    for (const auto& [size, count] : key_sizes) keys += count;
    for (const auto& [size, count] : value_sizes) values += count;
    CHECK(key_sizes.size() == (split == Split::train ? 3u : 1u));
    CHECK(key_sizes.count(3) == 1);
    // The probe's sizes come twice, and long motifs fill the room sooner: a third, roughly.
    for (const auto& [size, count] : value_sizes) CHECK(std::abs(count / values - 1.0 / 3) < 0.03);
    if (split == Split::test) continue;
    for (const auto& [size, count] : key_sizes) CHECK(std::abs(count / keys - 1.0 / 3) < 0.03);
  }
}

TEST_CASE("selective copying asks for the symbols in their order, at the blanks", "[mad]") {
  const Rules rules = baseline(Exercise::selective_copying);
  CHECK((rules.vocabulary == 16 && rules.length == 256 && rules.symbols == 16));
  CHECK(answers(rules) == 14);
  double blanks_first = 0;
  const int examples = 4000;
  for (int i = 0; i < examples; ++i) {
    const Example example = exercise_example(rules, static_cast<std::uint64_t>(i));
    REQUIRE(example.tokens.size() == 256);
    REQUIRE(example.tokens[239] == 15);
    REQUIRE(example.tokens[238] < 14);  // no blank between the last symbol and the sign
    std::vector<std::int64_t> symbols;
    for (std::size_t t = 0; t < 239; ++t) {
      REQUIRE(example.tokens[t] < 15);
      if (example.tokens[t] < 14) symbols.push_back(example.tokens[t]);
    }
    REQUIRE((symbols.size() == 16 && example.questions.size() == 16));
    for (std::size_t q = 0; q < 16; ++q) {
      const Question& question = example.questions[q];
      REQUIRE((question.position == 240 + static_cast<std::int64_t>(q) &&
               example.tokens[240 + q] == 14 && question.answer == symbols[q]));
      REQUIRE(example.tokens[index_of(question.position - question.distance)] == question.answer);
    }
    std::size_t t = 0;
    while (example.tokens[t] == 14) ++t;
    blanks_first += static_cast<double>(t);
  }
  // 223 blanks, each before one of 16 symbols.
  CHECK(blanks_first / examples == Approx(223.0 / 16).epsilon(0.02));
}

TEST_CASE("compression asks the sign's position for every symbol", "[mad]") {
  const Rules rules = baseline(Exercise::compression);
  CHECK((rules.vocabulary == 16 && rules.length == 32));
  CHECK(answers(rules) == 15);
  std::map<std::int64_t, double> symbols;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    const Example example = exercise_example(rules, i);
    REQUIRE((example.tokens.size() == 32 && example.tokens[31] == 15));
    REQUIRE(example.questions.size() == 31);
    for (std::size_t q = 0; q < 31; ++q) {
      const Question& question = example.questions[q];
      REQUIRE((question.position == 31 && question.place == static_cast<std::int64_t>(q)));
      REQUIRE((question.answer == example.tokens[q] && question.answer < 15));
      REQUIRE(question.distance == 31 - question.place);
      ++symbols[question.answer];
    }
  }
  for (const auto& [symbol, count] : symbols) {
    CHECK(std::abs(count / 31000 - 1.0 / 15) < bar(1.0 / 15, 31000));
  }
}

TEST_CASE("memorization has one map for all examples, splits and lengths", "[mad]") {
  const Rules rules = baseline(Exercise::memorization);
  CHECK((rules.vocabulary == 256 && rules.length == 32 && rules.train == 256));
  CHECK(answers(rules) == 128);
  std::map<std::int64_t, std::int64_t> value_of;
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    for (std::uint64_t i = 0; i < 256; ++i) {
      const Example example = exercise_example(rules, i, split);
      REQUIRE((example.tokens.size() == 32 && example.questions.size() == 16));
      for (const Question& question : example.questions) {
        REQUIRE((question.position % 2 == 1 && example.tokens[index_of(question.position)] == 255));
        const std::int64_t key = example.tokens[index_of(question.position - 1)];
        REQUIRE((key >= 0 && key < 127 && question.answer >= 127 && question.answer < 255));
        REQUIRE(value_of.emplace(key, question.answer).first->second == question.answer);
        REQUIRE(question.distance == 0);
      }
    }
  }
  CHECK(value_of.size() == 127);
  std::set<std::int64_t> values;
  for (const auto& [key, value] : value_of) values.insert(value);
  CHECK(values.size() == 127);
  CHECK(make_example(rules, exercise_seed + 1, Split::test, 0).questions[0].answer !=
        value_of[make_example(rules, exercise_seed + 1, Split::test, 0).tokens[0]]);
}
