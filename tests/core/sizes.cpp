#include "core/sizes.hpp"

#include <limits>

#include "tests/support/catch.hpp"

using attnbench::evaluate;
using attnbench::ExpressionError;

namespace {

std::int64_t value(const std::string& text) {
  return evaluate(text, [](const std::string& name) -> std::int64_t {
    if (name == "length") return 4096;
    throw ExpressionError("no size " + name);
  });
}

}  // namespace

TEST_CASE("Size expressions follow the usual precedence", "[suite]") {
  CHECK(value("7") == 7);
  CHECK(value("length / 2") == 2048);
  CHECK(value("1 + 2 * 3 - 4") == 3);
  CHECK(value("length/4/4*2") == 512);
  CHECK(value("10 - 4 - 3") == 3);
  CHECK(value("9223372036854775807") == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("Size expressions that are none say why", "[suite]") {
  for (const char* text :
       {"", "+", "1 +", "* 2", "length length", "2(3)", "1.5", "-3", "width", "length / 3",
        "length / 0", "9223372036854775807 + 1", "9223372036854775807 * 2",
        "0 - 9223372036854775807 - 2", "9223372036854775808"}) {
    INFO(text);
    CHECK_THROWS_AS(value(text), ExpressionError);
  }
}
