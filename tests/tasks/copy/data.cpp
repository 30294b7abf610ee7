#include "tasks/copy/data.hpp"

#include <cmath>
#include <map>

#include "core/errors.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::tasks::copy;
using Catch::Matchers::Contains;

namespace {

CopyPlan plan_of(std::int64_t length = 128) {
  CopyPlan plan;
  plan.length = length;
  plan.train = plan.validation = plan.test = 10;
  plan.seed = 5;
  return plan;
}

}  // namespace

TEST_CASE("an example is a sequence, the separator, the sequence and padding", "[copy]") {
  std::map<std::int64_t, int> lengths;
  std::map<std::int64_t, int> symbols;
  const int examples = 20000;
  for (int i = 0; i < examples; ++i) {
    const Sequence one = make_sequence(plan_of(), Split::train, static_cast<std::uint64_t>(i));
    REQUIRE(one.tokens.size() == 128);
    const auto n = static_cast<std::size_t>(one.symbols);
    bool as_told = one.tokens[n] == 0;
    for (std::size_t t = 0; t < n; ++t) {
      as_told = as_told && one.tokens[t] >= 1 && one.tokens[t] <= 10;
      as_told = as_told && one.tokens[t] == one.tokens[n + 1 + t];
    }
    for (std::size_t t = 2 * n + 1; t < 128; ++t) as_told = as_told && one.tokens[t] == 0;
    REQUIRE(as_told);
    ++lengths[one.symbols];
    ++symbols[one.tokens[0]];
  }
  // The authors' code draws from randint(128 // 4, 127 // 2), which leaves out its end.
  CHECK(lengths.begin()->first == 32);
  CHECK(lengths.rbegin()->first == 62);
  CHECK(lengths.size() == 31);
  for (const auto& [n, count] : lengths) {
    CHECK(std::abs(count - examples / 31.0) < 5 * std::sqrt(examples / 31.0));
  }
  CHECK(symbols.size() == 10);
  for (const auto& [symbol, count] : symbols) {
    CHECK(std::abs(count - examples / 10.0) < 5 * std::sqrt(examples / 10.0));
  }
}

TEST_CASE("the next token is learned from the last symbol on, the symbols are asked", "[copy]") {
  const CopyData data(plan_of(32));
  const std::vector<std::int64_t> some{3, 0, 7};
  const auto learned = data.batch(Split::train, 0, some);
  const auto asked = data.questions(Split::train, 0, some);
  CHECK(learned.labels.size(0) == asked.labels.size(0) + 3);
  CHECK_FALSE(learned.places.defined());
  const auto check = [&](const tasks::training::Batch& batch, bool with_separator) {
    std::int64_t separators = 0;
    for (std::int64_t i = 0; i < batch.labels.size(0); ++i) {
      const auto position = batch.positions[i].item<std::int64_t>();
      const at::Tensor row = batch.tokens[position / 32];
      const auto at = position % 32;
      const auto label = batch.labels[i].item<std::int64_t>();
      REQUIRE(row[at + 1].item<std::int64_t>() == label);
      const auto distance = batch.distances[i].item<std::int64_t>();
      if (label == 0) {
        ++separators;
        CHECK(distance == 0);
      } else {
        REQUIRE(row[at - distance].item<std::int64_t>() == label);
        CHECK(batch.candidates[i].eq(label).any().item<bool>());
      }
    }
    CHECK(separators == (with_separator ? 3 : 0));
  };
  check(learned, true);
  check(asked, false);
  CHECK(data.segments(Split::train)[0].labels == Approx((8 + 14) / 2.0 + 1));
}

TEST_CASE("sizes that leave nothing to copy are refused, the smallest others are not", "[copy]") {
  CHECK_THROWS_WITH(CopyData(plan_of(3)), Contains("length 3"));
  CopyPlan plan = plan_of();
  plan.vocabulary = 2;
  CHECK_THROWS_WITH(CopyData(plan), Contains("vocabulary 2"));
  for (const std::int64_t length : {4, 5, 6, 7, 8, 9, 33}) {
    for (std::uint64_t i = 0; i < 50; ++i) {
      const Sequence one = make_sequence(plan_of(length), Split::test, i);
      CHECK(one.symbols >= 1);
      CHECK(2 * one.symbols + 1 <= length);
    }
  }
}
