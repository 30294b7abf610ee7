#include "tests/program/tutorial.hpp"

#include "tests/program/installed.hpp"
#include "tests/support/catch.hpp"

TEST_CASE("the page on a mechanism of one's own works as it is written, from nothing",
          "[program][tutorial]") {
  test::follow_the_page(test::TemporaryFolder(), test::installed_elsewhere().environment());
}
