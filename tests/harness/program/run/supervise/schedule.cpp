#include "harness/program/run/supervise/schedule.hpp"

#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/support/catch.hpp"

using namespace attnbench::run;
using Catch::Matchers::Contains;

namespace {

Planned cell(const std::string& id, bool training = false) {
  Planned planned;
  planned.cell.id = id;
  planned.forecast.once = training;
  return planned;
}

Planned settled_cell(const std::string& id) {
  Planned planned = cell(id);
  planned.settled = Settled{attnbench::Status::unsupported, "no", ""};
  return planned;
}

/// "a0 b0 a1": all that is left, each measured well.
std::string order(Schedule& schedule) {
  std::string text;
  while (const auto step = schedule.next()) {
    text += (text.empty() ? "" : " ") + step->planned->id() + std::to_string(step->round);
    schedule.add(step->planned->id(), step->round, true);
  }
  return text;
}

Sharing rounds(int count) {
  Sharing sharing;
  sharing.rounds = count;
  return sharing;
}

Sharing two_jobs() {
  Sharing sharing = rounds(3);
  sharing.jobs = 2;
  sharing.threads = 5;
  sharing.memory_bytes = 100;
  return sharing;
}

}  // namespace

TEST_CASE("rounds are interleaved over the cells", "[schedule]") {
  Schedule schedule({cell("a"), cell("b"), settled_cell("c")}, rounds(2));
  CHECK(schedule.steps_left() == 4);
  CHECK(schedule.anything_timed());
  CHECK(order(schedule) == "a0 b0 a1 b1");
  CHECK(schedule.steps_left() == 0);
  CHECK_FALSE(schedule.anything_timed());
  // In turns they change places from round to round.
  Sharing sharing = rounds(3);
  sharing.in_turns = true;
  Schedule turns({cell("a"), cell("b")}, sharing);
  CHECK(order(turns) == "a0 b0 b1 a1 a2 b2");
  // A training has one round, and is no reason to wait for quiet.
  Schedule trainings({cell("a", true), cell("b", true)}, rounds(3));
  CHECK_FALSE(trainings.anything_timed());
  CHECK(order(trainings) == "a0 b0");
}

TEST_CASE("rounds that are there are not measured again, nor cells that failed", "[schedule]") {
  Schedule schedule({cell("a"), cell("b"), cell("c")}, rounds(3));
  schedule.add("a", 0, true);
  schedule.add("a", 2, true);
  schedule.add("b", 1, false);
  CHECK(schedule.steps_left(schedule.planned()[0]) == 1);
  CHECK(schedule.steps_left(schedule.planned()[1]) == 0);
  CHECK(schedule.steps_left() == 4);
  CHECK(order(schedule) == "c0 a1 c1 c2");
}

TEST_CASE("trainings share the machine, and what is timed does not", "[schedule]") {
  Planned large = cell("large", true);
  large.forecast.peak_bytes = 51;
  Planned on_card = cell("on_card", true);
  on_card.cell.device = "cuda";
  Schedule schedule(
      {cell("timed"), cell("a", true), cell("b", true), cell("c", true), large, on_card},
      two_jobs());
  schedule.add("c", 0, true);
  const auto together = schedule.side_by_side();
  REQUIRE(together.size() == 2);
  CHECK(together[0]->id() == "a");
  CHECK(together[1]->id() == "b");
  CHECK(schedule.threads_of(*together[0]) == 2);
  CHECK(schedule.threads_of(schedule.planned()[0]) == 5);
  CHECK_FALSE(schedule.shares(schedule.planned()[0]));
  CHECK_FALSE(schedule.shares(schedule.planned()[5]));
  schedule.add("a", 0, true);
  CHECK(schedule.side_by_side().empty());  // a single one shares with no other
}

TEST_CASE("several jobs need trainings, unless other shards have them", "[schedule]") {
  CHECK_THROWS_WITH(Schedule({cell("a")}, two_jobs()), Contains("--jobs 2 is for trainings"));
  Sharing sharing = two_jobs();
  sharing.sharded = true;
  CHECK(Schedule({cell("a")}, sharing).side_by_side().empty());
}

TEST_CASE("every piece is done once, whatever the number of lanes", "[jobs]") {
  for (const std::size_t lanes : {1, 2, 5}) {
    Lanes shared(20);
    std::mutex mutex;
    std::multiset<std::size_t> done;
    shared.run(lanes, [&] {
      while (const auto piece = shared.next()) {
        const std::lock_guard<std::mutex> lock(mutex);
        done.insert(*piece);
      }
    });
    CHECK(done.size() == 20);
    CHECK(std::set<std::size_t>(done.begin(), done.end()).size() == 20);
    CHECK_FALSE(shared.failed());
  }
}

TEST_CASE("lanes are at work at the same time", "[jobs]") {
  Lanes shared(2);
  std::atomic<int> arrived{0};
  bool together = true;
  shared.run(2, [&] {
    while (shared.next()) {
      ++arrived;
      for (int i = 0; i < 12'000 && arrived < 2; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      together = together && arrived == 2;
    }
  });
  CHECK(together);
}

TEST_CASE("after a lane has failed no cell is started, and the failure is reported", "[jobs]") {
  Lanes shared(1000);
  std::atomic<int> begun{0};
  const auto lane = [&] {
    while (const auto piece = shared.next()) {
      ++begun;
      if (*piece == 3) throw std::runtime_error("piece 3 is broken");
      while (*piece > 3 && !shared.failed()) std::this_thread::yield();
    }
  };
  CHECK_THROWS_WITH(shared.run(2, lane), "piece 3 is broken");
  CHECK(begun <= 6);
  CHECK(shared.failed());
}

TEST_CASE("further rounds are those of some cells, after all others", "[schedule][ab]") {
  Sharing sharing = rounds(2);
  sharing.in_turns = true;
  Schedule schedule({cell("a"), cell("b"), cell("c")}, sharing);
  CHECK(order(schedule) == "a0 b0 c0 c1 b1 a1");
  REQUIRE(schedule.next_rounds({{"a", "c"}, 2, 4, false}));
  CHECK(schedule.steps_left() == 4);
  CHECK(order(schedule) == "a2 c2 c3 a3");
  CHECK_FALSE(schedule.next_rounds({{"a", "c"}, 2, 4, false}));
  SECTION("in an order that is drawn, and the same where the run is resumed") {
    const auto drawn_order = [&] {
      Schedule drawn({cell("a"), cell("b")}, sharing);
      CHECK(order(drawn) == "a0 b0 b1 a1");
      REQUIRE(drawn.next_rounds({{"a", "b"}, 48, 60, true}));
      CHECK(drawn.is_drawn());
      return order(drawn);
    };
    const std::string text = drawn_order();
    CHECK(text == drawn_order());
    // Neither of the two is always the first.
    int a_first = 0;
    for (int round = 48; round < 60; ++round) {
      a_first += text.find("a" + std::to_string(round)) < text.find("b" + std::to_string(round));
    }
    CHECK(a_first > 0);
    CHECK(a_first < 12);
  }
  SECTION("of a cell that failed meanwhile there are none") {
    schedule.add("a", 1, false);
    REQUIRE(schedule.next_rounds({{"a", "c"}, 4, 5, false}));
    CHECK(order(schedule) == "c4");
  }
}
