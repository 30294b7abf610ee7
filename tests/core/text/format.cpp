#include "core/text/format.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace attnbench;
using Json = nlohmann::json;

TEST_CASE("seconds have three digits and a unit", "[result]") {
  CHECK(text::human_seconds(0.0012345) == "1.23 ms");
  CHECK(text::human_seconds(0.012345) == "12.3 ms");
  CHECK(text::human_seconds(123.456) == "123 s");
  CHECK(text::human_seconds(2.5e-6) == "2.50 µs");
  CHECK(text::human_seconds(2.5e-6, text::Letters::ascii) == "2.50 us");
  CHECK(text::human_seconds(3e-9) == "3.00 ns");
  CHECK(text::human_seconds(0.0009999) == "1.00 ms");
  CHECK(text::human_seconds(0) == "0.00 ns");
}

TEST_CASE("measured seconds have the digits of their interval, two or three", "[result]") {
  CHECK(text::measured_seconds(1.234e-3, 1.23e-3, 1.24e-3) == "1.23 ms");
  CHECK(text::measured_seconds(1.234e-3, 1.16e-3, 1.3e-3) == "1.2 ms");
  CHECK(text::measured_seconds(12.34e-3, 11.6e-3, 13e-3) == "12 ms");
  CHECK(text::measured_seconds(162.3e-6, 153e-6, 171e-6) == "160 µs");
  CHECK(text::measured_seconds(162.3e-6, 153e-6, 171e-6, text::Letters::ascii) == "160 us");
  CHECK(text::measured_seconds(996e-6, 900e-6, 1100e-6) == "1.0 ms");  // not 1000 µs
  CHECK(text::measured_seconds(994e-6, 900e-6, 1100e-6) == "990 µs");
  CHECK(text::measured_seconds(9.96e-3, 9e-3, 11e-3) == "10 ms");
  CHECK(text::measured_seconds(99.6e-3, 90e-3, 110e-3) == "100 ms");
  // Rounding to 1.2 may move it by 0.05.
  CHECK(text::supported_digits(1.23, 1.20, 1.27) == 3);
  CHECK(text::supported_digits(1.23, 1.22, 1.29) == 2);
  CHECK(text::supported_digits(1.23, 1.17, 1.24) == 2);
  // ±1 % of 8 is more than that, of 1.23 less.
  CHECK(text::supported_digits(8.23, 8.15, 8.31) == 2);
  CHECK(text::supported_digits(1.23, 0.1, 9) == 2);  // never fewer
  CHECK(text::supported_digits(0, 0, 0) == 3);
}

TEST_CASE("values whose intervals lie apart are printed apart", "[result]") {
  for (double first = 1; first < 10; first += 0.013) {
    for (const double share : {0.009, 0.02, 0.05}) {
      const double second = first * (1 + share) / (1 - share) * 1.0001;
      const auto text = [&](double value) {
        return text::measured_seconds(value, value * (1 - share), value * (1 + share));
      };
      INFO(first << " and " << second << ", each ±" << share);
      CHECK(text(first) != text(second));
    }
  }
}

TEST_CASE("bytes count in powers of two", "[result]") {
  CHECK(text::human_bytes(0) == "0 B");
  CHECK(text::human_bytes(1023) == "1023 B");
  CHECK(text::human_bytes(1024) == "1.00 KiB");
  CHECK(text::human_bytes(1.5 * 1024 * 1024) == "1.50 MiB");
  CHECK(text::human_bytes(3e9) == "2.79 GiB");
  CHECK(text::human_bytes(1e60) == "9.09e+47 TiB");
  CHECK(text::human_seconds(1e60) == "1.00e+60 s");
}

TEST_CASE("counts and rates", "[result]") {
  CHECK(text::human_count(12) == "12");
  CHECK(text::human_count(4.1e9) == "4.10 G");
  CHECK(text::human_spread(10, 9.5, 10.2) == "±5.0 %");
  CHECK(text::human_spread(10, 8, 10.2, text::Letters::ascii) == "+-20 %");
  // A disturbed row: no percentage of thousands.
  CHECK(text::human_spread(10, 9, 20) == "±100 %");
  CHECK(text::human_spread(10, 9, 20.5) == "unsteady");
  CHECK(text::human_spread(8e-6, 7e-6, 11.7e-3, text::Letters::ascii) == "unsteady");
}

TEST_CASE("values are written as people write them", "[result]") {
  CHECK(text::human_value(1024) == "1024");
  CHECK(text::human_value("causal") == "causal");
  CHECK(text::human_value(true) == "true");
  CHECK(text::human_value(Json{{"left", 127}, {"right", 0}}) == "127+0");
}

TEST_CASE("text is broken at blanks", "[result]") {
  using Lines = std::vector<std::string>;
  CHECK(text::wrap("one two three", 7) == Lines{"one two", "three"});
  CHECK(text::wrap("one two three", 80) == Lines{"one two three"});
  CHECK(text::wrap("a wordtoolong b", 5) == Lines{"a", "wordtoolong", "b"});
  CHECK(text::wrap("µµµ µµµ", 7) == Lines{"µµµ µµµ"});
  CHECK(text::wrap("", 5).empty());
}

TEST_CASE("widths count letters, not bytes", "[result]") {
  CHECK(text::display_width("µs ±1") == 5);
  CHECK(text::pad_left("µ", 3) == "  µ");
  CHECK(text::pad_right("µ", 3) == "µ  ");
  CHECK(text::shorten("latte, µ scan", 8) == "latte, …");
  CHECK(text::shorten("latte", 8) == "latte");
  CHECK(text::display_width(text::shorten("µµµµµµ", 4)) == 4);
  CHECK(text::shorten("latte, scan", 8, text::Letters::ascii) == "latte, ~");
}
