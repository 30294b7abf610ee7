#include "tasks/training/data.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

#include "core/errors.hpp"
#include "tasks/training/draws.hpp"
#include "tasks/training/prefetcher.hpp"
#include "tasks/training/schedule.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::tasks::learning;

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

Order order_of(bool shuffled) { return {{7, 5}, 3, shuffled, false, 5}; }

}  // namespace

TEST_CASE("random numbers are those of Philox4x32-10", "[learning]") {
  // Salmon et al. 2011, known answers of Random123: counter and key 0, and all ones.
  at::Philox4_32 zero(0, 0);
  CHECK(zero() == 0x6627e8d5u);
  CHECK(zero() == 0xe169c58du);
  CHECK(zero() == 0xbc57ac4cu);
  CHECK(zero() == 0x9b00dbd8u);
  Draws draws(1, 2);
  std::map<std::int64_t, int> seen;
  double sum = 0;
  for (int i = 0; i < 30000; ++i) {
    ++seen[draws.below(3)];
    const double share = draws.uniform();
    CHECK((share > 0 && share < 1));
    sum += share;
  }
  for (const auto& [number, count] : seen) CHECK(std::abs(count - 10000) < 330);
  CHECK(seen.size() == 3);
  CHECK(std::abs(sum / 30000 - 0.5) < 0.007);
  CHECK(key_of({1, 2}) != key_of({2, 1}));
  CHECK(key_of({0}) != key_of({0, 0}));
}

TEST_CASE("an epoch has every example once, in batches of one segment", "[learning]") {
  for (const bool shuffled : {true, false}) {
    const Order order = order_of(shuffled);
    CHECK(order.steps_per_epoch() == 5);
    for (const std::int64_t number : {0, 1}) {
      const auto epoch = order.epoch(number);
      REQUIRE(epoch.size() == 5);
      std::set<std::pair<std::size_t, std::int64_t>> seen;
      for (const Handful& handful : epoch) {
        CHECK((handful.examples.size() >= 1 && handful.examples.size() <= 3));
        for (const std::int64_t example : handful.examples) {
          CHECK(example < (handful.segment == 0 ? 7 : 5));
          CHECK(seen.emplace(handful.segment, example).second);
        }
      }
      CHECK(seen.size() == 12);
    }
  }
  const auto first = order_of(false).epoch(0);
  CHECK(first[0].examples == std::vector<std::int64_t>{0, 1, 2});
  CHECK(first[2].examples == std::vector<std::int64_t>{6});
  CHECK(first[3].segment == 1);
  const auto texts = [](const std::vector<Handful>& epoch) {
    std::vector<std::int64_t> all;
    for (const auto& handful : epoch) {
      all.insert(all.end(), handful.examples.begin(), handful.examples.end());
    }
    return all;
  };
  CHECK(texts(order_of(true).epoch(3)) == texts(order_of(true).epoch(3)));
  CHECK(texts(order_of(true).epoch(3)) != texts(order_of(true).epoch(4)));
}

TEST_CASE("a fresh order shows no example twice, and all that there are", "[learning]") {
  Order order = order_of(true);
  order.fresh = true;
  std::set<std::pair<std::size_t, std::int64_t>> seen;
  for (const std::int64_t number : {0, 1, 2}) {
    for (const Handful& handful : order.epoch(number)) {
      for (const std::int64_t example : handful.examples) {
        CHECK(seen.emplace(handful.segment, example).second);
      }
    }
    CHECK(seen.size() == static_cast<std::size_t>(12 * (number + 1)));
  }
  CHECK(seen.rbegin()->second == 14);
}

TEST_CASE("a feeder gives the order's batches from any step on", "[learning]") {
  const Numbers data;
  const Order order = order_of(true);
  std::vector<Handful> wanted = order.epoch(0);
  const auto second = order.epoch(1);
  wanted.insert(wanted.end(), second.begin(), second.end());
  for (const std::int64_t first : {0, 3, 5, 9}) {
    Feeder feeder(data, order, first, 10);
    for (std::int64_t step = first; step < 10; ++step) {
      const Batch batch = feeder.next();
      const Handful& handful = wanted[static_cast<std::size_t>(step)];
      CHECK(at::equal(batch.labels, at::tensor(handful.examples, at::kLong)));
      CHECK(batch.tokens.item<std::int64_t>() == static_cast<std::int64_t>(handful.segment));
    }
    CHECK_THROWS_AS(feeder.next(), std::logic_error);
  }
}

TEST_CASE("a feeder hands on what went wrong, and makes no more than is wanted", "[learning]") {
  Numbers broken;
  broken.fails_at = 3;
  Feeder feeder(broken, order_of(true), 0, 5);
  feeder.next();
  feeder.next();
  CHECK_THROWS_WITH(feeder.next(), "no data today");
  const Numbers patient;
  { const Feeder unused(patient, order_of(true), 0, 1000000); }
  CHECK(patient.made() < 20);
}

TEST_CASE("learning rates follow their schedules", "[learning]") {
  Course course{Schedule::cosine, 4, 10, 2};
  CHECK(course.steps() == 20);
  CHECK(course.factor(0) == Approx(0.25));
  CHECK(course.factor(3) == Approx(1));
  CHECK(course.factor(4) == Approx(1));
  CHECK(course.factor(12) == Approx(0.5));
  CHECK(course.factor(19) == Approx((1 + std::cos(M_PI * 15 / 16)) / 2));
  course.schedule = Schedule::linear;
  CHECK(course.factor(12) == Approx(0.5));
  course.schedule = Schedule::constant;
  CHECK(course.factor(19) == 1);
  course.schedule = Schedule::inverse_square_root;
  CHECK(course.factor(4) == Approx(std::sqrt(4.0 / 5)));
  CHECK(course.factor(15) == Approx(0.5));
  course.warm_up_steps = 0;
  CHECK(course.factor(0) == Approx(1));
  course.schedule = Schedule::cosine_by_epoch;
  CHECK(course.factor(9) == Approx(1));
  CHECK(course.factor(10) == Approx(0.5));
  CHECK(course.factor(19) == Approx(0.5));
  course.schedule = Schedule::drop;
  course.warm_up_steps = 4;
  course.drop_after = 12;
  CHECK(course.factor(1) == Approx(0.5));
  CHECK(course.factor(11) == 1);
  CHECK(course.factor(12) == Approx(0.1));
  for (const std::string& word : schedule_words()) CHECK(to_string(schedule_from(word)) == word);
  CHECK_THROWS_AS(schedule_from("stairs"), UsageError);
}
