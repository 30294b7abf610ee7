// The main of every test program. Each case has the name of its file as a tag: test_attention
// "[#latte]".
#include <stdlib.h>

#include "tests/support/files.hpp"

#if __has_include(<catch2/catch_session.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

namespace {

/// What tests and the programs that they start have in common.
void set_surroundings() {
  // A cache of the tests' own: no test is answered by the user's, and all share one.
  setenv("XDG_CACHE_HOME", (test::build_folder() + "/test_cache").c_str(), 1);
  // Pictures are rendered for tests that ask for them.
  setenv("ATTNBENCH_PYTHON", "/nowhere", 1);
  // Threads that spin while they wait slow down what runs beside.
  setenv("OMP_WAIT_POLICY", "passive", 0);
}

}  // namespace

int main(int argc, char** argv) {
  set_surroundings();
  Catch::Session session;
  session.configData().filenamesAsTags = true;
  return session.run(argc, argv);
}
