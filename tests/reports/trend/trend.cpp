#include "reports/trend/trend.hpp"

#include <cmath>

#include "tests/support/catch.hpp"

using namespace attnbench;
namespace trend = reports::trend;

namespace {

/// Noise of `spread` around 1 that repeats: the fractional parts of multiples of the golden ratio.
std::vector<double> noisy(std::size_t count, double spread, double level = 1) {
  std::vector<double> values;
  for (std::size_t i = 1; i <= count; ++i) {
    const double part = std::fmod(static_cast<double>(i) * 0.6180339887, 1.0);
    values.push_back(level * (1 + spread * (part - 0.5)));
  }
  return values;
}

std::vector<double> joined(std::vector<double> first, const std::vector<double>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<trend::HistoryLine> history_of(const std::string& machine,
                                           const std::vector<double>& values) {
  std::vector<trend::HistoryLine> lines;
  for (std::size_t i = 0; i < values.size(); ++i) {
    trend::HistoryLine line;
    line.commit = "c" + std::to_string(i);
    line.date = "2026-01-" + std::to_string(10 + i) + "T00:00:00Z";
    line.machine = machine;
    line.id = "a";
    line.what = "forward";
    line.label = "latte";
    line.name = "kernel latte, length 1024";
    line.median_seconds = values[i];
    lines.push_back(line);
  }
  return lines;
}

}  // namespace

TEST_CASE("a step is found where it is, with an interval around its size", "[trend]") {
  const auto changes = trend::changes_of(joined(noisy(10, 0.02), noisy(10, 0.02, 1.1)));
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].at == 10);
  CHECK(changes[0].low < 1.1);
  CHECK(changes[0].high > 1.1);
  CHECK(changes[0].low > 1.05);
  CHECK(changes[0].ratio == Approx(1.1).epsilon(0.01));
}

TEST_CASE("two steps are two changes; noise, an outlier and a short series are none", "[trend]") {
  const auto there_and_back =
      joined(joined(noisy(12, 0.02), noisy(12, 0.02, 1.2)), noisy(12, 0.02, 0.9));
  const auto changes = trend::changes_of(there_and_back);
  REQUIRE(changes.size() == 2);
  CHECK(changes[0].at == 12);
  CHECK(changes[1].at == 24);
  CHECK(changes[1].high < 1);
  std::vector<double> outlier = noisy(20, 0.02);
  outlier[9] = 3;
  for (const std::vector<double>& values :
       {noisy(40, 0.1), std::vector<double>(30, 1.0), outlier, std::vector<double>(),
        joined(noisy(4, 0.02), noisy(4, 0.02, 2))}) {
    CHECK(trend::changes_of(values).empty());
  }
}

TEST_CASE("machines are series and figures of their own", "[trend]") {
  auto lines = history_of("m1", joined(noisy(6, 0.01), noisy(6, 0.01, 2)));
  const auto other = history_of("m2", noisy(6, 0.01));
  lines.insert(lines.end(), other.begin(), other.end());
  const auto series = trend::series_of(lines);
  REQUIRE(series.size() == 2);
  CHECK(series[0].changes.size() == 1);
  CHECK(series[1].changes.empty());
  const auto figures = trend::figures_of(series);
  REQUIRE(figures.size() == 2);
  CHECK(figures[0].name != figures[1].name);
  CHECK(figures[0].spec["layer"].size() == 4);  // lines, points, the change and its interval
  CHECK(figures[1].spec["layer"].size() == 2);
  CHECK(figures[0].spec["data"]["values"].size() == 12);
  const std::string table = trend::changes_markdown(series);
  CHECK_THAT(table, Catch::Contains("| c6 |") && Catch::Contains("× "));
  CHECK_THAT(trend::changes_markdown({series[1]}), Catch::Contains("No level changed"));
}

TEST_CASE("a series is in order of its dates, calibrated where all of it is", "[trend]") {
  auto lines = history_of("m", {1, 2, 3});
  std::swap(lines[0], lines[2]);
  for (auto& line : lines) line.calibrated_median = line.median_seconds * 10;
  CHECK(trend::series_of(lines)[0].values == std::vector<double>{10, 20, 30});
  lines[1].calibrated_median.reset();
  CHECK(trend::series_of(lines)[0].values == std::vector<double>{1, 2, 3});
}
