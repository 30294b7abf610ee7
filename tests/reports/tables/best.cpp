#include "reports/tables/best.hpp"

#include <algorithm>

#include "reports/tables/tables.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;

TEST_CASE("tables mark the fastest and the smallest of each column", "[best]") {
  result::Result result = test::fixture_result("fixtures/quickstart");
  const result::Panel panel = test::first_panel(result);
  const auto grids = result::grids_of(panel, result::Letters::utf8);
  const auto row_of = [&](const std::string& name) {
    const auto& series = panel.series;
    return static_cast<std::size_t>(std::find(series.begin(), series.end(), name) - series.begin());
  };
  const std::set<std::pair<std::size_t, std::size_t>> fastest{
      {row_of("window"), 0}, {row_of("window"), 1}, {row_of("window"), 2}};
  CHECK(grids[0].best == fastest);
  CHECK(grids[1].best.count({row_of("flash"), 2}) == 1);
  CHECK(grids[1].best.count({row_of("softmax"), 2}) == 0);
  // Not what was disturbed, or is of a single round.
  result::CellRecord single = result.cells[0];
  CHECK(result::ranked_time(single).has_value());
  single.timing.at("forward").rounds.resize(1);
  CHECK_FALSE(result::ranked_time(single).has_value());
  for (result::CellRecord& cell : result.cells) {
    if (cell.label == "window") cell.status = result::Status::disturbed;
  }
  // It was the fastest, so that nothing of what is left is.
  const result::Grid times = result::grids_of(test::first_panel(result), result::Letters::utf8)[0];
  CHECK(times.best.empty());
  CHECK_THAT(times.note, Catch::Contains("no best at 256: window was disturbed"));
}

TEST_CASE("colour marks the best, and nothing of a label reaches the terminal raw", "[best]") {
  result::Result result = test::fixture_result("fixtures/quickstart");
  for (result::CellRecord& cell : result.cells) {
    if (cell.label == "flash") cell.label = "fla\x1b[31msh";
  }
  result::TableStyle style;
  CHECK_THAT(result::table(result, style), !Catch::Contains("\x1b[1m"));
  style.colour = true;
  CHECK_THAT(result::table(result, style),
             Catch::Contains("\x1b[1m") && !Catch::Contains("\x1b[31m"));
}
