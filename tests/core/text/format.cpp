#include "core/text/format.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace attnbench::result;
using Json = nlohmann::json;

TEST_CASE("seconds have three digits and a unit", "[result]") {
  CHECK(human_seconds(0.0012345) == "1.23 ms");
  CHECK(human_seconds(0.012345) == "12.3 ms");
  CHECK(human_seconds(123.456) == "123 s");
  CHECK(human_seconds(2.5e-6) == "2.50 µs");
  CHECK(human_seconds(2.5e-6, Letters::ascii) == "2.50 us");
  CHECK(human_seconds(3e-9) == "3.00 ns");
  CHECK(human_seconds(0.0009999) == "1.00 ms");
  CHECK(human_seconds(0) == "0.00 ns");
}

TEST_CASE("bytes count in powers of two", "[result]") {
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(1023) == "1023 B");
  CHECK(human_bytes(1024) == "1.00 KiB");
  CHECK(human_bytes(1.5 * 1024 * 1024) == "1.50 MiB");
  CHECK(human_bytes(3e9) == "2.79 GiB");
}

TEST_CASE("counts and rates", "[result]") {
  CHECK(human_count(12) == "12");
  CHECK(human_count(4.1e9) == "4.10 G");
  CHECK(human_spread(10, 9.5, 10.2) == "±5.0 %");
  CHECK(human_spread(10, 8, 10.2, Letters::ascii) == "+-20 %");
  // A disturbed row: no percentage of thousands.
  CHECK(human_spread(10, 9, 20) == "±100 %");
  CHECK(human_spread(10, 9, 20.5) == "unsteady");
  CHECK(human_spread(8e-6, 7e-6, 11.7e-3, Letters::ascii) == "unsteady");
}

TEST_CASE("values are written as people write them", "[result]") {
  CHECK(human_value(1024) == "1024");
  CHECK(human_value("causal") == "causal");
  CHECK(human_value(true) == "true");
  CHECK(human_value(Json{{"left", 127}, {"right", 0}}) == "127+0");
}

TEST_CASE("text is broken at blanks", "[result]") {
  using Lines = std::vector<std::string>;
  CHECK(wrap("one two three", 7) == Lines{"one two", "three"});
  CHECK(wrap("one two three", 80) == Lines{"one two three"});
  CHECK(wrap("a wordtoolong b", 5) == Lines{"a", "wordtoolong", "b"});
  CHECK(wrap("µµµ µµµ", 7) == Lines{"µµµ µµµ"});
  CHECK(wrap("", 5).empty());
}

TEST_CASE("widths count letters, not bytes", "[result]") {
  CHECK(display_width("µs ±1") == 5);
  CHECK(pad_left("µ", 3) == "  µ");
  CHECK(pad_right("µ", 3) == "µ  ");
  CHECK(shorten("latte, µ scan", 8) == "latte, …");
  CHECK(shorten("latte", 8) == "latte");
  CHECK(display_width(shorten("µµµµµµ", 4)) == 4);
  CHECK(shorten("latte, scan", 8, Letters::ascii) == "latte, ~");
}
