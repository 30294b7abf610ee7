#include "reports/figures/kinds.hpp"

#include <set>

#include "reports/tables/csv.hpp"
#include "reports/tables/tables.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using Json = nlohmann::json;
using test::crossover_cell;
using test::round_of;

namespace {

result::Result map_result() {
  std::vector<result::CellRecord> cells;
  for (const char* scope : {"mix", "layer"}) {
    for (const int heads : {4, 16}) {
      cells.push_back(crossover_cell(scope, heads, 16, {round_of("below", 0, 64)}));
      cells.push_back(crossover_cell(scope, heads, 64, {round_of("found", 100, 120)}));
      cells.push_back(crossover_cell(scope, heads, 256, {round_of("above", 4096, 0)}));
      cells.push_back(crossover_cell(scope, heads, 0, {round_of("found", 80, 90)}));
    }
  }
  return test::crossover_result(cells);
}

std::optional<reports::Figure> map_of(const std::vector<reports::Panel>& panels) {
  std::vector<const reports::Panel*> all;
  for (const reports::Panel& panel : panels) all.push_back(&panel);
  return reports::crossover_figure(all, {"latte", "linear"});
}

}  // namespace

TEST_CASE("the crossover map is one figure over scopes and sizes", "[reports]") {
  const auto panels = test::panels(map_result());
  REQUIRE(panels.size() == 4);
  const auto figure = map_of(panels);
  REQUIRE(figure);
  const Json& spec = figure->spec;
  CHECK(spec["facet"]["column"]["sort"] == Json({"scope mix", "scope layer"}));
  CHECK(spec["facet"]["row"]["sort"] == Json({"heads 4", "heads 16"}));
  CHECK(figure->name == "crossover_crossover");
  CHECK_THAT(figure->subtitle,
             Catch::Contains("B=1, D=64, causal, float32, cpu, forward") &&
                 Catch::Contains("chunked (auto) against softmax/tiled: latte, linear"));
  CHECK(spec["spec"]["encoding"]["x"]["axis"]["values"] == Json({16, 64, 256}));
}

TEST_CASE("a crossover that was found has its interval, a censored one points to its side",
          "[reports]") {
  const auto figure = map_of({test::first_panel(map_result())});
  REQUIRE(figure);
  std::map<std::string, int> kinds;
  for (const Json& row : figure->spec["data"]["values"]) {
    ++kinds[row["series"].get<std::string>() + " " + row["kind"].get<std::string>()];
    if (row["series"] == "latte" && row["kind"] == "found") {
      CHECK((row["low"] == 100 && row["high"] == 120));
      CHECK(row["y"].get<double>() == Approx(109.5).epsilon(1e-3));
      CHECK(row["said"] == "110 (100 to 120)");
    }
    if (row["kind"] == "below") CHECK(row["y"] == 64);
    if (row["kind"] == "above") CHECK(row["y"] == 4096);
    for (const char* key : {"scope", "device", "dtype", "head_dim", "heads", "latents", "against"})
      CHECK(row.contains(key));
  }
  // Linear has no size: it is drawn at all of them.
  CHECK(kinds ==
        std::map<std::string, int>{
            {"latte below", 1}, {"latte found", 1}, {"latte above", 1}, {"linear found", 3}});
  CHECK_FALSE(figure->spec["facet"].contains("row"));
  std::set<std::string> hollow;
  for (const Json& layer : figure->spec["spec"]["layer"]) {
    if (layer["mark"].value("filled", true)) continue;
    hollow.insert(layer["mark"]["shape"].get<std::string>());
    std::size_t entries = 0;
    for (const char* channel : {"strokeDash", "strokeWidth", "strokeOpacity"}) {
      if (!layer["encoding"].contains(channel)) continue;
      ++entries;
      CHECK(layer["encoding"][channel]["legend"]["symbolType"] == layer["mark"]["shape"]);
    }
    CHECK(entries == 1);
  }
  CHECK(hollow == std::set<std::string>{"triangle-down", "triangle-up"});  // those that there are
}

TEST_CASE("a cell without a place on the map is named in its caption", "[reports]") {
  result::Result result = map_result();
  for (const auto& [status, word] :
       {std::pair{Status::timeout, "timeout"}, {Status::disturbed, "disturbed"}}) {
    result.cells[1].status = status;
    const auto figure = map_of({test::first_panel(result)});
    REQUIRE(figure);
    for (const Json& row : figure->spec["data"]["values"]) CHECK(row["id"] != result.cells[1].id);
    CHECK_THAT(figure->caption,
               Catch::Contains("Not drawn: latte at 64 (scope mix") && Catch::Contains(word));
  }
  for (result::CellRecord& cell : result.cells) cell.status = Status::timeout;
  CHECK_FALSE(map_of({test::first_panel(result)}));
}

TEST_CASE("tables hold the crossover's interval and both sides", "[reports]") {
  const result::Result result = map_result();
  CHECK_THAT(reports::markdown_tables(result), Catch::Contains("110 (100 to 120)") &&
                                                   Catch::Contains("below 64") &&
                                                   Catch::Contains("scope layer"));
  CHECK_THAT(reports::csv_table(result),
             Catch::Contains("crossover_length,crossover_length_low,crossover_length_high") &&
                 Catch::Contains("found,softmax/tiled"));
}
