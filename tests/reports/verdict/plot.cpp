#include "reports/verdict/plot.hpp"

#include <algorithm>

#include "core/text/format.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::reports::verdict;
using Catch::Matchers::Contains;

namespace {

/// Exact attention that grows by the square, and something that is linear from above it.
Ranking two_lines() {
  Ranking ranking;
  ranking.axis = "length";
  ranking.rows.resize(2);
  RankedRow& linear = ranking.rows[0];
  linear.label = linear.mechanism = "linear";
  RankedRow& exact = ranking.rows[1];
  exact.label = exact.mechanism = "softmax";
  for (double length = 256; length < 5000; length *= 2) {
    linear.along.emplace_back(length, length * 1e-6);
    exact.along.emplace_back(length, length * length * 1e-9);
  }
  return ranking;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// The number of dots of the letters of braille in `text`.
int dots_of(const std::string& text) {
  int dots = 0;
  for (std::size_t i = 0; i + 2 < text.size(); ++i) {
    if (text[i] != '\xE2') continue;
    const int letter = (text[i + 1] & 0x03) << 6 | (text[i + 2] & 0x3F);
    for (int bit = 0; bit < 8; ++bit) dots += letter >> bit & 1;
  }
  return dots;
}

}  // namespace

TEST_CASE("a plot has its lines' labels at their ends, seconds and places at its sides",
          "[reports]") {
  const auto lines = lines_of(plot_of(two_lines(), 70, false));
  REQUIRE(lines.size() == 15);
  // The square ends above, the linear one where 4.1 ms of 66 µs to 16.8 ms lie.
  CHECK_THAT(lines[0], Contains("16.8 ms") && Contains(" softmax"));
  CHECK_THAT(lines[13], Contains("65.5 µs"));
  const auto linear = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find(" linear") != std::string::npos;
  });
  CHECK(linear - lines.begin() == 3);
  CHECK_THAT(lines.back(), Contains("256 ") && Contains(" length ") && Contains(" 4096"));
  for (const std::string& line : lines) CHECK(text::display_width(line) <= 70);
  // Both go from the left to the right: a dot in each of 52 letters' columns at least.
  int dots = 0;
  for (const std::string& line : lines) dots += dots_of(line);
  CHECK(dots > 2 * 2 * (70 - 9 - 8) - 20);
  CHECK_THAT(plot_of(two_lines(), 70, true), Contains("\x1b[38;5;"));
}

TEST_CASE("a plot says what is timed, and cannot act on the terminal by a label", "[reports]") {
  Ranking ranking = two_lines();
  ranking.timed = "forward pass";
  ranking.rows[0].label = "linear\x1b[2J\n";
  const std::string plot = plot_of(ranking, 70, false);
  CHECK(plot.starts_with("time of the forward pass\n"));
  CHECK(plot.find('\x1b') == std::string::npos);
  CHECK(lines_of(plot).size() == 16);
}

TEST_CASE("labels whose lines end at one place have a row each", "[reports]") {
  Ranking ranking = two_lines();
  ranking.rows[0].along = ranking.rows[1].along;
  ranking.rows.push_back(ranking.rows[0]);
  ranking.rows.back().label = "latte";
  const std::string plot = plot_of(ranking, 70, false);
  std::size_t found = 0;
  for (const std::string& line : lines_of(plot)) {
    const auto holds = [&](const char* label) { return line.find(label) != std::string::npos; };
    const int labels = int{holds(" linear")} + int{holds(" softmax")} + int{holds(" latte")};
    CHECK(labels < 2);
    found += static_cast<std::size_t>(labels);
  }
  CHECK(found == 3);
}

TEST_CASE("what has no room or no two lines is not drawn", "[reports]") {
  CHECK(plot_of(two_lines(), 40, false).empty());
  Ranking ranking = two_lines();
  ranking.rows[0].along.resize(1);
  CHECK(plot_of(ranking, 100, false).empty());
  ranking = two_lines();
  ranking.rows[0].along[0].first = 0;  // an axis that begins at 0 has no logarithm
  CHECK(plot_of(ranking, 100, false).empty());
  ranking = two_lines();
  while (ranking.rows.size() < 20) ranking.rows.push_back(ranking.rows[0]);
  CHECK(plot_of(ranking, 100, false).empty());
  CHECK(plot_of(Ranking{}, 100, false).empty());
  ranking = two_lines();
  ranking.by_quality = true;
  CHECK(plot_of(ranking, 100, false).empty());
}
