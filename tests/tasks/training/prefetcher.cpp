#include "tasks/training/prefetcher.hpp"

#include <ATen/core/PhiloxRNGEngine.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "core/random.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::tasks::training;

namespace {

/// Batches whose labels are the examples' numbers.
class Numbers final : public DataSet {
 public:
  std::vector<SegmentSize> segments(Split) const override { return {{"a", 2, 7}, {"b", 4, 5}}; }
  Batch batch(Split, std::size_t segment,
              const std::vector<std::int64_t>& examples) const override {
    if (++made_ == fails_at) throw std::runtime_error("no data today");
    Batch batch;
    batch.labels = at::tensor(examples, at::kLong);
    batch.tokens = at::full({1}, static_cast<std::int64_t>(segment), at::kLong);
    return batch;
  }
  int made() const { return made_; }
  int fails_at = -1;

 private:
  mutable std::atomic<int> made_{0};
};

BatchOrder order_of(bool shuffled) { return {{7, 5}, 3, shuffled, false, 5}; }

}  // namespace

TEST_CASE("random numbers are those of ATen's Philox engine", "[training]") {
  constexpr std::uint64_t key = 0x243f6a88'85a308d3ull;
  constexpr std::uint64_t subject = 0x1'0000'0002ull;
  at::Philox4_32 theirs(key, subject);
  Random ours(key, subject);
  for (int i = 0; i < 1000; ++i) REQUIRE(ours.next() == theirs());
  Random random(1, 2);
  std::map<std::int64_t, int> seen;
  double sum = 0;
  for (int i = 0; i < 30000; ++i) {
    ++seen[random.below(3)];
    const double share = random.uniform();
    CHECK((share > 0 && share < 1));
    sum += share;
  }
  for (const auto& [number, count] : seen) CHECK(std::abs(count - 10000) < 330);
  CHECK(seen.size() == 3);
  CHECK(std::abs(sum / 30000 - 0.5) < 0.007);
  CHECK(key_of({1, 2}) != key_of({2, 1}));
  CHECK(key_of({0}) != key_of({0, 0}));
}

TEST_CASE("an epoch has every example once, in batches of one segment", "[training]") {
  for (const bool shuffled : {true, false}) {
    const BatchOrder order = order_of(shuffled);
    CHECK(order.steps_per_epoch() == 5);
    for (const std::int64_t number : {0, 1}) {
      const auto epoch = order.epoch(number);
      REQUIRE(epoch.size() == 5);
      std::set<std::pair<std::size_t, std::int64_t>> seen;
      for (const BatchExamples& one : epoch) {
        CHECK((one.examples.size() >= 1 && one.examples.size() <= 3));
        for (const std::int64_t example : one.examples) {
          CHECK(example < (one.segment == 0 ? 7 : 5));
          CHECK(seen.emplace(one.segment, example).second);
        }
      }
      CHECK(seen.size() == 12);
    }
  }
  const auto first = order_of(false).epoch(0);
  CHECK(first[0].examples == std::vector<std::int64_t>{0, 1, 2});
  CHECK(first[2].examples == std::vector<std::int64_t>{6});
  CHECK(first[3].segment == 1);
  const auto texts = [](const std::vector<BatchExamples>& epoch) {
    std::vector<std::int64_t> all;
    for (const auto& one : epoch) {
      all.insert(all.end(), one.examples.begin(), one.examples.end());
    }
    return all;
  };
  CHECK(texts(order_of(true).epoch(3)) == texts(order_of(true).epoch(3)));
  CHECK(texts(order_of(true).epoch(3)) != texts(order_of(true).epoch(4)));
}

TEST_CASE("a fresh order has every example once over all epochs", "[training]") {
  BatchOrder order = order_of(true);
  order.fresh = true;
  std::set<std::pair<std::size_t, std::int64_t>> seen;
  for (const std::int64_t number : {0, 1, 2}) {
    for (const BatchExamples& one : order.epoch(number)) {
      for (const std::int64_t example : one.examples) {
        CHECK(seen.emplace(one.segment, example).second);
      }
    }
    CHECK(seen.size() == static_cast<std::size_t>(12 * (number + 1)));
  }
  CHECK(seen.rbegin()->second == 14);
}

TEST_CASE("a prefetcher gives the order's batches from any step on", "[training]") {
  const Numbers data;
  const BatchOrder order = order_of(true);
  std::vector<BatchExamples> wanted = order.epoch(0);
  const auto second = order.epoch(1);
  wanted.insert(wanted.end(), second.begin(), second.end());
  for (const std::int64_t first : {0, 3, 5, 9}) {
    Prefetcher prefetcher(data, order, first, 10);
    for (std::int64_t step = first; step < 10; ++step) {
      const Batch batch = prefetcher.next();
      const BatchExamples& one = wanted[static_cast<std::size_t>(step)];
      CHECK(at::equal(batch.labels, at::tensor(one.examples, at::kLong)));
      CHECK(batch.tokens.item<std::int64_t>() == static_cast<std::int64_t>(one.segment));
    }
    CHECK_THROWS_AS(prefetcher.next(), std::logic_error);
  }
}

TEST_CASE("a prefetcher rethrows errors, and makes few batches ahead", "[training]") {
  Numbers broken;
  broken.fails_at = 3;
  Prefetcher prefetcher(broken, order_of(true), 0, 5);
  prefetcher.next();
  prefetcher.next();
  CHECK_THROWS_WITH(prefetcher.next(), "no data today");
  const Numbers patient;
  { const Prefetcher unused(patient, order_of(true), 0, 1000000); }
  CHECK(patient.made() < 20);
}
