#include "reports/tables/best.hpp"

#include <algorithm>

#include "reports/tables/tables.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;

TEST_CASE("tables mark the fastest and the smallest of each column", "[best]") {
  result::Result result = test::fixture_result("fixtures/quickstart");
  const reports::Panel panel = test::first_panel(result);
  const auto grids = reports::grids_of(panel, text::Letters::utf8);
  const auto row_of = [&](const std::string& name) {
    const auto& series = panel.series;
    return static_cast<std::size_t>(std::find(series.begin(), series.end(), name) - series.begin());
  };
  // At the shortest length flash is 30 % slower, and rounds of this run differ by as much.
  const std::set<std::pair<std::size_t, std::size_t>> fastest{
      {row_of("flash"), 0}, {row_of("window"), 0}, {row_of("window"), 1}, {row_of("window"), 2}};
  CHECK(grids[0].best == fastest);
  CHECK(grids[1].best.count({row_of("flash"), 2}) == 1);
  CHECK(grids[1].best.count({row_of("softmax"), 2}) == 0);
  // Not what was disturbed, or is of a single round.
  const reports::Ranked ranked = reports::ranked_times(panel);
  result::CellRecord single = result.cells[0];
  CHECK(ranked(single).has_value());
  single.timing.at("forward").rounds.resize(1);
  CHECK_FALSE(ranked(single).has_value());
  for (result::CellRecord& cell : result.cells) {
    if (cell.label == "window") cell.status = Status::disturbed;
  }
  // It was the fastest, so that nothing of what is left is.
  const reports::Grid times = reports::grids_of(test::first_panel(result), text::Letters::utf8)[0];
  CHECK(times.best.empty());
  CHECK_THAT(times.note, Catch::Contains("no best at 256: window was disturbed"));
}

TEST_CASE("few rounds that agree by chance have the scatter of all cells of their panel",
          "[best]") {
  std::vector<result::CellRecord> cells;
  const auto add = [&](const std::string& name, const std::vector<double>& rounds) {
    test::CellBuilder cell(name);
    cell.took(median(rounds)).rounds(rounds).length(256);
    result::Timing& timing = cell.timing.at("forward");
    const Spread spread = spread_of(rounds);
    timing.low_seconds = spread.low;
    timing.high_seconds = spread.high;
    timing.interval = spread.order ? "order" : "range";
    cells.push_back(cell);
  };
  add("close", {1.000, 1.001, 1.002});
  add("wide", {0.8, 1.1, 1.6});
  add("other", {1.0, 1.2, 1.5});
  add("six", {0.99, 1.0, 1.0, 1.0, 1.0, 1.01});
  const reports::Panel panel = test::first_panel(test::result_of(cells));
  const reports::Ranked ranked = reports::ranked_times(panel);
  const auto close = ranked(*panel.cells[0].cell).value();
  CHECK(close.median == Approx(1.001));
  CHECK(close.low < 0.85);
  CHECK(close.high > 1.15);
  // Never narrower than what was seen, nor other than order statistics.
  const auto wide = ranked(*panel.cells[1].cell).value();
  CHECK(wide.low <= 0.8);
  CHECK(wide.high >= 1.6);
  const auto six = ranked(*panel.cells[3].cell).value();
  CHECK(six.low == 0.99);
  CHECK(six.high == 1.01);
}

TEST_CASE("colour marks the best, and nothing of a label reaches the terminal raw", "[best]") {
  result::Result result = test::fixture_result("fixtures/quickstart");
  for (result::CellRecord& cell : result.cells) {
    if (cell.label == "flash") cell.label = "fla\x1b[31msh";
  }
  reports::TableStyle style;
  CHECK_THAT(reports::table(result, style), !Catch::Contains("\x1b[1m"));
  style.colour = true;
  CHECK_THAT(reports::table(result, style),
             Catch::Contains("\x1b[1m") && !Catch::Contains("\x1b[31m"));
}
