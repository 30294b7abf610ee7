#include "tasks/training/process_group.hpp"

#include <chrono>

#include "core/errors.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("joining a process group alone fails after the time limit", "[process_group]") {
  if (!tasks::training::has_process_groups()) return;
  ProcessRank own;
  own.size = 2;
  own.address = "127.0.0.1";
  own.port = 29913;
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_WITH(tasks::training::join_process_group(own, "alone", 2),
                    Catch::Contains("process 0 of 2 did not meet the others at 127.0.0.1:29913 "
                                    "within 2 s"));
  const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
  CHECK(waited.count() > 1.5);
}
