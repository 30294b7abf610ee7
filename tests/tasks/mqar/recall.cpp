// Examples of recall checked against their rules, one by one.
#include "tasks/mqar/recall.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/errors.hpp"
#include "tasks/mqar/data.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::tasks::mqar;
using Catch::Matchers::Contains;

namespace {

constexpr std::uint64_t recall_seed = 11;

Example example_of(const Recall& recall, const RecallSegment& shape, std::uint64_t number) {
  return make_example(recall, shape, recall_seed, Split::train, 0, number);
}

}  // namespace

TEST_CASE("an example follows its rules", "[mqar]") {
  for (const Filler filler : {Filler::zeros, Filler::random}) {
    Recall recall;
    recall.vocabulary = 256;
    recall.filler = filler;
    const RecallSegment shape{64, 16, 0};  // every slot is asked
    for (std::uint64_t number = 0; number < 200; ++number) {
      const Example example = example_of(recall, shape, number);
      REQUIRE(example.tokens.size() == 64);
      std::map<std::int64_t, std::int64_t> value_of;
      std::set<std::int64_t> values;
      for (std::size_t i = 0; i < 32; i += 2) {
        const std::int64_t key = example.tokens[i];
        CHECK((key >= 1 && key < 128));
        CHECK((example.tokens[i + 1] >= 128 && example.tokens[i + 1] < 256));
        CHECK(value_of.emplace(key, example.tokens[i + 1]).second);
        values.insert(example.tokens[i + 1]);
      }
      CHECK(values == std::set<std::int64_t>(example.candidates.begin(), example.candidates.end()));
      CHECK(values.size() == 16);
      REQUIRE(example.questions.size() == 16);
      std::set<std::int64_t> asked;
      for (const Question& question : example.questions) {
        const auto at = static_cast<std::size_t>(question.position);
        CHECK((question.position >= 32 && question.position % 2 == 0));
        CHECK(value_of.at(example.tokens[at]) == question.answer);
        CHECK(example.tokens[at - static_cast<std::size_t>(question.distance)] == question.answer);
        asked.insert(question.position);
      }
      CHECK(asked.size() == 16);
      CHECK(std::is_sorted(example.questions.begin(), example.questions.end(),
                           [](const auto& a, const auto& b) { return a.position < b.position; }));
      std::int64_t filled = 0;
      for (std::int64_t i = 32; i < 64; ++i) {
        const std::int64_t token = example.tokens[static_cast<std::size_t>(i)];
        if (asked.count(i) == 0) filled += token != 0;
        CHECK((token >= 0 && token < 256));
      }
      CHECK((filler == Filler::zeros ? filled == 0 : filled > 8));
    }
  }
}

TEST_CASE("a repeated key has its newest value", "[mqar]") {
  Recall recall;
  recall.variant = Variant::forgetting;
  recall.vocabulary = 512;
  recall.updates = 3;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Example example = example_of(recall, {64, 8, 0}, number);
    std::map<std::int64_t, std::int64_t> newest;
    std::map<std::int64_t, std::int64_t> place;
    for (std::int64_t i = 0; i < 22; i += 2) {
      const std::int64_t key = example.tokens[static_cast<std::size_t>(i)];
      const std::int64_t value = example.tokens[static_cast<std::size_t>(i + 1)];
      if (i >= 16) {
        CHECK(newest.count(key) == 1);
        CHECK(newest[key] != value);
      }
      newest[key] = value;
      place[key] = i + 1;
    }
    CHECK(newest.size() == 8);
    CHECK(example.candidates.size() == 11);
    for (const Question& question : example.questions) {
      const std::int64_t key = example.tokens[static_cast<std::size_t>(question.position)];
      CHECK(question.answer == newest.at(key));
      CHECK(question.distance == question.position - place.at(key));
      CHECK(question.position >= 22);
    }
  }
}

TEST_CASE("a value of two keys is asked by both", "[mqar]") {
  Recall recall;
  recall.variant = Variant::compositional;
  recall.vocabulary = 300;
  for (std::uint64_t number = 0; number < 200; ++number) {
    const Example example = example_of(recall, {80, 9, 0}, number);
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> value_of;
    std::set<std::int64_t> first, second;
    for (std::size_t i = 0; i < 27; i += 3) {
      first.insert(example.tokens[i]);
      second.insert(example.tokens[i + 1]);
      value_of[{example.tokens[i], example.tokens[i + 1]}] = example.tokens[i + 2];
    }
    CHECK((first.size() == 3 && second.size() == 3 && value_of.size() == 9));
    CHECK((*first.begin() >= 1 && *first.rbegin() < 100));
    CHECK((*second.begin() >= 100 && *second.rbegin() < 200));
    REQUIRE(example.questions.size() == 9);
    for (const Question& question : example.questions) {
      const auto at = static_cast<std::size_t>(question.position);
      CHECK(value_of.at({example.tokens[at - 1], example.tokens[at]}) == question.answer);
      CHECK(example.tokens[at - static_cast<std::size_t>(question.distance)] == question.answer);
    }
  }
}

TEST_CASE("stacked keys and values share their positions", "[mqar]") {
  Recall recall;
  recall.variant = Variant::stacked;
  recall.vocabulary = 100;
  CHECK(tokens_per_position(recall) == 2);
  for (std::uint64_t number = 0; number < 100; ++number) {
    const Example example = example_of(recall, {16, 8, 0}, number);
    REQUIRE(example.tokens.size() == 32);
    for (const Question& question : example.questions) {
      const auto at = static_cast<std::size_t>(2 * question.position);
      const auto from = static_cast<std::size_t>(2 * (question.position - question.distance));
      CHECK(example.tokens[at] == example.tokens[from]);
      CHECK(example.tokens[from + 1] == question.answer);
      CHECK(example.tokens[at + 1] == 0);
      CHECK(question.position >= 8);
    }
  }
}

TEST_CASE("impossible sizes are refused, naming the rule", "[mqar]") {
  const auto refused = [](const Recall& recall, const RecallSegment& shape, const char* why) {
    INFO(why);
    CHECK_THROWS_WITH(check(recall, shape), Contains(why));
    CHECK_THROWS_AS(check(recall, shape), UsageError);
  };
  Recall recall;
  refused(recall, {63, 4, 1}, "even");
  refused(recall, {64, 17, 1}, "four positions");
  refused(recall, {64, 0, 1}, "at least one pair");
  recall.vocabulary = 64;
  refused(recall, {64, 4, 1}, "greater than the length");
  recall.vocabulary = std::int64_t{1} << 31;
  refused(recall, {64, 4, 1}, "2^31");
  recall.vocabulary = 512;
  CHECK_NOTHROW(check(recall, {64, 16, 1}));
  recall.variant = Variant::forgetting;
  refused(recall, {64, 15, 1}, "updates");
  refused(recall, {64, 3, 1}, "as many pairs");
  refused(recall, {63, 4, 1}, "even");
  CHECK_NOTHROW(check(recall, {64, 14, 1}));
  recall.variant = Variant::compositional;
  refused(recall, {64, 8, 1}, "square");
  refused(recall, {53, 9, 1}, "six positions");
  CHECK_NOTHROW(check(recall, {54, 9, 1}));
  recall.variant = Variant::stacked;
  refused(recall, {64, 16, 1}, "twice");
}

TEST_CASE("segments are parsed from text", "[mqar]") {
  const auto segments = segments_from(" 64x4:100000,128x8:20000   256x64:5 ");
  REQUIRE(segments.size() == 3);
  CHECK((segments[1].length == 128 && segments[1].pairs == 8 && segments[1].examples == 20000));
  CHECK(to_string(segments) == "64x4:100000, 128x8:20000, 256x64:5");
  for (const char* wrong : {"", "64", "64x4", "64x4:", "64x4:0", "-64x4:1", "64x4:1;", ",64x4:1",
                            "64x4:1128x8:1", "x4:1", "64x4:99999999999999999999"}) {
    INFO(wrong);
    CHECK_THROWS_AS(segments_from(wrong), UsageError);
  }
  CHECK_THROWS_AS(variant_from("simple"), UsageError);
  CHECK_THROWS_AS(filler_from("noise"), UsageError);
}
