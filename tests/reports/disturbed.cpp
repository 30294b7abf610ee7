// What figures, tables and the page make of cells that other programs disturbed.
#include <algorithm>

#include "reports/draw.hpp"
#include "reports/figures/points.hpp"
#include "reports/page/page.hpp"
#include "reports/page/page_tables.hpp"
#include "reports/tables/conditions.hpp"
#include "reports/tables/csv.hpp"
#include "reports/tables/least.hpp"
#include "reports/tables/tables.hpp"
#include "reports/verdict/input.hpp"
#include "reports/verdict/ranking_table.hpp"
#include "tests/reports/figures/spec_parts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using Json = nlohmann::json;
namespace verdict = reports::verdict;

namespace {

const std::string reason = "3 of 3 rounds were preempted: repeat on a quiet machine";

/// The fixture, `label` at `length` (all lengths where 0) in slices of 16 ms, with a sample of
/// 203 µs.
result::Result disturbed(const std::string& label, int length) {
  result::Result result = test::fixture_result();
  for (result::CellRecord& cell : result.cells) {
    if (cell.label != label || cell.timing.empty()) continue;
    if (length > 0 && cell.settings["length"] != length) continue;
    cell.status = Status::disturbed;
    cell.reason = reason;
    for (auto& [what, timing] : cell.timing) {
      timing.median_seconds = 0.016;
      timing.low_seconds = 0.012;
      timing.high_seconds = 0.020;
      timing.minimum_seconds = 203e-6;
      for (result::TimingRound& round : timing.rounds) round.disturbed = true;
    }
  }
  return result;
}

reports::Figure figure_of(const result::Result& result, const std::string& name) {
  return reports::draw(name, test::first_panel(result), test::fixture_palette, {}).at(0);
}

std::vector<Json> rows_of(const reports::Figure& figure, const std::string& series) {
  std::vector<Json> rows;
  for (const Json& row : test::own_rows(figure.spec)) {
    if (row["series"] == series) rows.push_back(row);
  }
  return rows;
}

/// Whether a layer marks what was disturbed.
bool is_ring(const Json& layer) {
  return layer["encoding"].value("strokeWidth", Json::object()).contains("legend");
}

/// Layers of points in a line figure: those that count, those that are marked.
std::vector<Json> point_layers(const reports::Figure& figure, bool marked) {
  std::vector<Json> layers;
  for (const Json& layer : test::layers_of(figure.spec)) {
    if (layer.contains("data") || layer["mark"]["type"] != "point") continue;
    if (is_ring(layer) == marked) layers.push_back(layer);
  }
  return layers;
}

bool has(const std::vector<Json>& rows, int x) {
  return std::any_of(rows.begin(), rows.end(), [x](const Json& row) { return row["x"] == x; });
}

}  // namespace

TEST_CASE("a disturbed time is a crossed ring with its reason, which no line joins", "[reports]") {
  const auto figure = figure_of(disturbed("linear", 1024), "time");
  std::size_t marked = 0;
  for (const Json& row : test::own_rows(figure.spec)) {
    if (!row["disturbed"].get<bool>()) continue;
    ++marked;
    CHECK((row["series"] == "linear" && row["x"] == 1024));
    CHECK(row["y"].get<double>() == Approx(0.203));  // the least sample, in the figure's ms
    CHECK(row["said"] == "203 µs");
    CHECK(row["reason"] == reason);
  }
  CHECK(marked == 1);
  const auto rings = point_layers(figure, true);
  REQUIRE(rings.size() == 1);
  CHECK(rings[0]["mark"]["filled"] == false);
  CHECK(rings[0]["mark"]["shape"] == rings[0]["encoding"]["strokeWidth"]["legend"]["symbolType"]);
  CHECK_THAT(rings[0]["encoding"]["tooltip"].dump(), Catch::Contains("\"reason\""));
  CHECK(rings[0]["transform"][0]["filter"] == "datum.disturbed");
  for (const Json& layer : test::layers_of(figure.spec)) {
    if (is_ring(layer) || layer.contains("data")) continue;
    if (layer["transform"].dump().find("datum.part ==") != std::string::npos) continue;
    CHECK_THAT(layer["transform"].dump(), Catch::Contains("!datum.disturbed"));
  }
  CHECK_THAT(figure.caption, Catch::Contains("Crossed rings: the least sample"));

  const auto quiet = figure_of(test::fixture_result(), "time");
  CHECK(point_layers(quiet, true).empty());
  CHECK_THAT(quiet.spec.dump(), !Catch::Contains("datum.disturbed"));
  CHECK_THAT(quiet.caption, !Catch::Contains("disturbed"));
}

TEST_CASE("a panel of disturbed times alone is still drawn, and labelled", "[reports]") {
  result::Result result = disturbed("linear", 0);
  for (result::CellRecord& cell : result.cells) {
    if (cell.label != "linear") cell.status = Status::skipped;
  }
  const auto figure = figure_of(result, "time");
  CHECK(point_layers(figure, false).empty());
  CHECK(point_layers(figure, true).size() == 1);
  const Json layers = test::layers_of(figure.spec);
  CHECK(std::any_of(layers.begin(), layers.end(), [](const Json& layer) {
    return layer.contains("data") && layer["data"]["name"] == "labels" &&
           layer["data"]["values"][0]["series"] == "linear";
  }));
}

TEST_CASE("nothing is derived from a disturbed time", "[reports]") {
  const result::Result result = disturbed("linear", 1024);
  const std::string words = "Left out, since other programs had the CPU: linear at length 1024.";
  for (const char* name : {"speedup", "roofline"}) {
    const auto figure = figure_of(result, name);
    INFO(name);
    CHECK_FALSE(has(rows_of(figure, "linear"), 1024));
    CHECK(has(rows_of(figure, "linear"), 2048));
    CHECK_THAT(figure.caption, Catch::Contains(words));
  }
  const auto slopes = figure_of(result, "slopes");
  for (const Json& row : rows_of(slopes, "linear")) {
    CHECK(row["where"].get<std::string>().find("1024") == std::string::npos);
    CHECK(row["y"].get<double>() == Approx(1).margin(0.15));
  }
  CHECK_THAT(slopes.caption, Catch::Contains(words));
  // Bytes are what they are.
  const auto memory = figure_of(result, "memory");
  CHECK(has(rows_of(memory, "linear"), 1024));
  CHECK(point_layers(memory, true).empty());
  // A disturbed baseline is left out, too.
  const auto speedup = figure_of(disturbed("softmax", 1024), "speedup");
  for (const Json& row : test::own_rows(speedup.spec)) CHECK(row["x"] != 1024);
  CHECK(reports::draw("speedup", test::first_panel(disturbed("softmax", 0)), test::fixture_palette,
                      {})
            .empty());
}

TEST_CASE("a time beside a status that is not ok is no point of a roofline", "[reports]") {
  result::Result result = test::fixture_result();
  for (result::CellRecord& cell : result.cells) {
    if (cell.label == "linear") cell.status = Status::crashed;  // in a later round
  }
  CHECK(rows_of(figure_of(result, "roofline"), "linear").empty());
}

TEST_CASE("intervals say how many rounds they are of", "[reports]") {
  CHECK(reports::interval_words("range", 5, 0) == "range of 5 rounds");
  CHECK(reports::interval_words("range", 5, 2) == "range of 3 rounds, 2 disturbed left out");
  CHECK(reports::interval_words("order", 1, 0) == "95 % over 1 round");
}

TEST_CASE("the least sample is of all rounds, whatever is stored of them", "[reports]") {
  result::Timing timing;
  timing.median_seconds = timing.low_seconds = 3;
  timing.rounds.resize(2);
  timing.rounds[0].median_seconds = 4;
  timing.rounds[1].median_seconds = 2;
  CHECK(reports::least_seconds(timing) == 2);  // samples stay in the run's journal
  timing.rounds[0].samples_seconds = {9, 1.5};
  CHECK(reports::least_seconds(timing.rounds[0]) == 1.5);
  CHECK(reports::least_seconds(timing) == 1.5);
  timing.minimum_seconds = 1;
  CHECK(reports::least_seconds(timing) == 1);
  CHECK(reports::disturbed_text(203e-6, text::Letters::ascii) == "least 203 us, disturbed");
}

TEST_CASE("the table that ranks has a disturbed cell's least sample, below what is ranked",
          "[reports]") {
  std::vector<result::CellRecord> cells;
  for (const char* task : {"forward", "decode"}) {
    for (const auto& [label, seconds] :
         {std::pair("softmax", 4e-3), std::pair("latte", 8e-3), std::pair("window", 1e-3)}) {
      test::CellBuilder cell(label, task);
      cell.named(std::string(task) + label).length(256);
      cell.took(seconds, task == std::string("decode") ? "step" : "forward");
      cells.push_back(cell.rounds({seconds * 0.99, seconds, seconds * 1.01}));
      if (cell.label != "window") continue;
      cells.back().status = Status::disturbed;
      cells.back().timing.begin()->second.minimum_seconds = 5e-6;
    }
  }
  const verdict::Verdict verdict = verdict::verdict_of(test::result_of(cells));
  REQUIRE(verdict.rankings.size() == 1);
  const reports::Grid grid = verdict::grid_of(verdict.rankings[0], text::Letters::utf8);
  const auto& [label, texts] = grid.rows.back();
  CHECK(label == "window");
  for (const char* column : {"time", "step"}) {
    const auto at = std::find(grid.columns.begin(), grid.columns.end(), column);
    INFO(column);
    REQUIRE(at != grid.columns.end());
    const auto i = static_cast<std::size_t>(at - grid.columns.begin());
    CHECK(texts[i] == "least 5.00 µs");
    CHECK_FALSE(grid.best.contains({grid.rows.size() - 1, i}));
  }
}

TEST_CASE("tables mark a disturbed number and list it with its reason", "[reports]") {
  result::Result result = disturbed("linear", 1024);
  const std::string rates = reports::table(result, {160, text::Letters::utf8});
  const std::size_t rate = rates.find("generated tokens per second");
  const std::size_t state = rates.find("\nstate\n");
  REQUIRE((state < rate && rate != std::string::npos));
  CHECK_THAT(rates.substr(rate), Catch::Contains("  disturbed"));  // of 1 token in 16 ms nothing
  CHECK_THAT(rates.substr(state, rate - state),
             Catch::Contains("linear") && !Catch::Contains("disturbed"));
  // A disturbed cell with an interval that would be called unsteady: the status says more.
  for (result::CellRecord& cell : result.cells) {
    if (!result::is_disturbed(cell)) continue;
    for (auto& [what, timing] : cell.timing) timing.high_seconds = 1;
  }
  const std::string text = reports::table(result, {120, text::Letters::utf8});
  CHECK_THAT(text, Catch::Contains("least 203 µs, disturbed") && !Catch::Contains("unsteady") &&
                       Catch::Contains("nothing is ranked") &&
                       Catch::Contains("linear at length 1024: disturbed: " + reason));
  CHECK_THAT(reports::markdown_tables(result), Catch::Contains("least 203 µs, disturbed"));
  CHECK_THAT(reports::latex_tables(result), Catch::Contains("least 203 µs, disturbed"));
  CHECK_THAT(reports::tables_html(result), Catch::Contains("<td>least 203 µs, disturbed</td>") &&
                                               Catch::Contains("nothing is ranked"));
  CHECK_THAT(reports::statuses_html(result),
             Catch::Contains("linear, length 1024") && Catch::Contains(reason));
  CHECK_THAT(reports::csv_table(result), Catch::Contains(",disturbed,"));
}
