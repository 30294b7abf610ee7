#include "harness/run/supervise/side_by_side.hpp"

#include <chrono>
#include <set>
#include <stdexcept>
#include <thread>

#include "tests/support/catch.hpp"

using attnbench::run::SideBySide;

TEST_CASE("every piece is done once, whatever the number of lanes", "[jobs]") {
  for (const std::size_t lanes : {1, 2, 5}) {
    SideBySide shared(20);
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
  SideBySide shared(2);
  std::atomic<int> arrived{0};
  bool together = true;
  shared.run(2, [&] {
    while (shared.next()) {
      ++arrived;
      for (int i = 0; i < 2000 && arrived < 2; ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      together = together && arrived == 2;
    }
  });
  CHECK(together);
}

TEST_CASE("where a lane fails nothing more is begun, and its failure is told", "[jobs]") {
  SideBySide shared(1000);
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
