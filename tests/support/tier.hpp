// Tests that are longer at night.
#pragma once

#include <cstdlib>
#include <string>

namespace attnbench::test {

/// Whether `tests/run.py --full` runs this.
inline bool at_night() {
  const char* const tier = std::getenv("ATTNBENCH_TEST_TIER");
  return tier != nullptr && std::string(tier) == "full";
}

}  // namespace attnbench::test
