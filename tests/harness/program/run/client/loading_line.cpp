#include "harness/program/run/client/loading_line.hpp"

#include "tests/support/catch.hpp"

using attnbench::run::loading_text;

TEST_CASE("what is long loaded is named by its file or module", "[worker]") {
  CHECK(loading_text("python:/home/me/near.py:Near", 12.9) == "importing near.py: 12 s");
  CHECK(loading_text("mine=python:/home/me/near.py:Near", 2) == "importing near.py: 2 s");
  CHECK(loading_text("python:fla.ops.gla:chunk_gla", 3) == "importing fla.ops.gla: 3 s");
  CHECK(loading_text("new=/plugins/libmine.so", 5) == "loading libmine.so: 5 s");
}
