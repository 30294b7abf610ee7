#include "tasks/training/process_group.hpp"

#include <chrono>

#include "core/errors.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("who meets nobody waits as long as was said, and no longer", "[crew]") {
  if (!tasks::learning::has_crews()) return;
  tasks::Seat seat;
  seat.size = 2;
  seat.address = "127.0.0.1";
  seat.port = 29913;
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH(tasks::learning::join_crew(seat, "alone", 2),
                    Catch::Contains("process 0 of 2 did not meet the others at 127.0.0.1:29913 "
                                    "within 2 s"));
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  CHECK(waited.count() > 1.5);
  CHECK(waited.count() < 3.9);  // twice two, where the store and the group wait one after the other
}
