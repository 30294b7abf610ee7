#include "reports/tables/best.hpp"

#include <nlohmann/json.hpp>

#include "core/result/document.hpp"
#include "reports/tables/layout.hpp"
#include "reports/tables/tables.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;

namespace {

result::Result quickstart() {
  return result::read_result(test::source_folder() + "/tests/reports/fixtures/quickstart.json");
}

}  // namespace

TEST_CASE("tables mark the fastest and the smallest of each column", "[best]") {
  const result::Result result = quickstart();
  const result::Panel panel = result::panels(result)[0];
  const auto grids = result::grids_of(panel, result::Letters::utf8);
  const auto row_of = [&](const std::string& name) {
    for (std::size_t i = 0; i < panel.series.size(); ++i) {
      if (panel.series[i] == name) return i;
    }
    return panel.series.size();
  };
  const std::set<std::pair<std::size_t, std::size_t>> fastest{
      {row_of("window"), 0}, {row_of("window"), 1}, {row_of("window"), 2}};
  CHECK(grids[0].best == fastest);
  CHECK(grids[1].best.count({row_of("flash"), 2}) == 1);
  CHECK(grids[1].best.count({row_of("softmax"), 2}) == 0);
}

TEST_CASE("a disturbed or single time is not the best", "[best]") {
  result::Result result = quickstart();
  for (result::CellRecord& cell : result.cells) {
    if (cell.label == "window") cell.status = result::Status::disturbed;
  }
  const result::Panel panel = result::panels(result)[0];
  const std::vector<result::Grid> grids = result::grids_of(panel, result::Letters::utf8);
  CHECK_FALSE(grids[0].best.empty());
  for (const auto& [row, column] : grids[0].best) {
    CHECK(panel.series[row] != "window");
  }
  result::CellRecord single = result.cells[0];
  CHECK(result::ranked_time(single).has_value());
  single.timing.at("forward").rounds.resize(1);
  CHECK_FALSE(result::ranked_time(single).has_value());
}

TEST_CASE("colour marks the best, and nothing of a label reaches the terminal raw", "[best]") {
  result::Result result = quickstart();
  for (result::CellRecord& cell : result.cells) {
    if (cell.label == "flash") cell.label = "fla\x1b[31msh";
  }
  result::TableStyle style;
  CHECK(result::table(result, style).find("\x1b[1m") == std::string::npos);
  style.colour = true;
  const std::string table = result::table(result, style);
  CHECK(table.find("\x1b[1m") != std::string::npos);
  CHECK(table.find("\x1b[31m") == std::string::npos);
}
