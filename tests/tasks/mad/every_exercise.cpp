// Properties of all exercises: training labels, seeds, possible sizes.
#include <vector>

#include "core/errors.hpp"
#include "tasks/mad/exercise.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::tasks::mad;
using Catch::Matchers::Contains;

namespace {

constexpr std::uint64_t every_seed = 3;

}  // namespace

TEST_CASE("recall is learned from every next token, the others from the scored labels", "[mad]") {
  for (const std::string& name : exercise_names()) {
    const Rules rules = baseline(exercise_from(name));
    INFO(name);
    const Example asked = make_example(rules, every_seed, Split::train, 1);
    const Example all = with_learned_labels(rules, asked);
    CHECK(static_cast<double>(all.questions.size()) == labels(rules));
    const bool next = name.find("recall") != std::string::npos;
    if (!next) {
      CHECK(all.questions.size() == asked.questions.size());
      continue;
    }
    std::size_t with_distance = 0;
    for (std::size_t i = 0; i < all.questions.size(); ++i) {
      REQUIRE(all.questions[i].position == static_cast<std::int64_t>(i));
      REQUIRE(all.questions[i].answer == all.tokens[i + 1]);
      with_distance += all.questions[i].distance > 0;
    }
    CHECK(with_distance == asked.questions.size());
  }
}

TEST_CASE("exercises are found by name, unknown ones refused with the nearest", "[mad]") {
  for (const std::string& name : exercise_names()) CHECK(to_string(exercise_from(name)) == name);
  CHECK_THROWS_WITH(exercise_from("recall"), Contains("in_context_recall"));
}

TEST_CASE("exercises of all allowed sizes can be made, others are refused", "[mad]") {
  const auto with = [](Exercise exercise, auto change) {
    Rules rules = baseline(exercise);
    change(rules);
    return rules;
  };
  using E = Exercise;
  const std::vector<Rules> small{
      with(E::in_context_recall, [](Rules& r) { r.length = 4, r.vocabulary = 4; }),
      with(E::noisy_recall, [](Rules& r) { r.length = 4, r.noise = 0.9; }),
      with(E::fuzzy_recall, [](Rules& r) { r.length = 24; }),
      with(E::fuzzy_recall, [](Rules& r) { r.length = 8, r.motif = 1, r.vocabulary = 3; }),
      with(E::selective_copying, [](Rules& r) { r.length = 33; }),
      with(E::selective_copying, [](Rules& r) { r.length = 3, r.symbols = 1, r.vocabulary = 4; }),
      with(E::compression, [](Rules& r) { r.length = 2, r.vocabulary = 3; }),
      with(E::memorization, [](Rules& r) { r.length = 2, r.vocabulary = 5; })};
  for (const Rules& rules : small) {
    INFO(to_string(rules.exercise) << " " << rules.length);
    CHECK_NOTHROW(check(rules));
    for (std::uint64_t i = 0; i < 200; ++i) {
      for (const Split split : {Split::train, Split::test}) {
        const Example example = make_example(rules, every_seed, split, i);
        REQUIRE(static_cast<std::int64_t>(example.tokens.size()) == rules.length);
        REQUIRE_FALSE(example.questions.empty());
        for (const std::int64_t token : example.tokens) {
          REQUIRE((token >= 0 && token < rules.vocabulary));
        }
      }
    }
  }
  const std::vector<std::pair<Rules, const char*>> wrong{
      {with(E::in_context_recall, [](Rules& r) { r.length = 7; }), "even"},
      {with(E::in_context_recall, [](Rules& r) { r.vocabulary = 3; }), "two keys"},
      {with(E::noisy_recall, [](Rules& r) { r.noise_tokens = 30; }), "besides the noise"},
      {with(E::noisy_recall, [](Rules& r) { r.noise_tokens = 0; }), "noise_tokens"},
      {with(E::noisy_recall, [](Rules& r) { r.noise = 1; }), "below 1"},
      {with(E::fuzzy_recall, [](Rules& r) { r.length = 23; }), "eight motifs"},
      {with(E::fuzzy_recall, [](Rules& r) { r.motif = 8; }), "fewer keys"},
      {with(E::fuzzy_recall, [](Rules& r) { r.motif = 0; }), "needs a token"},
      {with(E::selective_copying, [](Rules& r) { r.length = 32; }), "two tokens"},
      {with(E::selective_copying, [](Rules& r) { r.symbols = 0; }), "one symbol"},
      {with(E::selective_copying, [](Rules& r) { r.vocabulary = 3; }), "two symbols"},
      {with(E::compression, [](Rules& r) { r.length = 1; }), "a symbol"},
      {with(E::compression, [](Rules& r) { r.vocabulary = 2; }), "two symbols"},
      {with(E::memorization, [](Rules& r) { r.length = 3; }), "even"},
      {with(E::memorization, [](Rules& r) { r.vocabulary = 4; }), "two keys"},
      {with(E::memorization, [](Rules& r) { r.vocabulary = std::int64_t{1} << 31; }), "2^31"}};
  for (const auto& [rules, why] : wrong) {
    INFO(why);
    CHECK_THROWS_WITH(check(rules), Contains(why));
    CHECK_THROWS_AS(check(rules), UsageError);
  }
}
