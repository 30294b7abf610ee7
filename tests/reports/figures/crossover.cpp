#include "reports/figures/kinds.hpp"

#include <set>

#include "reports/tables/csv.hpp"
#include "reports/tables/tables.hpp"
#include "tests/reports/tables/crossover_cells.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench;
using test::crossover_cell;
using test::Json;
using test::round_of;

namespace {

Json map_result() {
  std::vector<Json> cells;
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

std::vector<const result::Panel*> pointers(const std::vector<result::Panel>& panels) {
  std::vector<const result::Panel*> all;
  for (const result::Panel& panel : panels) all.push_back(&panel);
  return all;
}

const std::vector<std::string> crossover_order{"latte", "linear"};

}  // namespace

TEST_CASE("the crossover map is one figure over scopes and sizes", "[reports]") {
  const Json result = map_result();
  const auto panels = test::panels(result);
  REQUIRE(panels.size() == 4);
  const auto figure = reports::crossover_figure(pointers(panels), crossover_order);
  REQUIRE(figure);
  const Json& spec = figure->spec;
  CHECK(spec["facet"]["column"]["sort"] == Json({"scope mix", "scope layer"}));
  CHECK(spec["facet"]["row"]["sort"] == Json({"heads 4", "heads 16"}));
  CHECK(figure->name == "crossover_crossover");
  CHECK_THAT(figure->subtitle, Catch::Contains("B=1, D=64, causal, float32, cpu, forward"));
  CHECK_THAT(figure->subtitle,
             Catch::Contains("chunked (auto) against softmax/tiled: latte, linear"));
  CHECK(spec["spec"]["encoding"]["x"]["axis"]["values"] == Json({16, 64, 256}));
}

TEST_CASE("a crossover that was found has its interval, a censored one points to its side",
          "[reports]") {
  const Json result = map_result();
  const auto panels = test::panels(result);
  const auto figure = reports::crossover_figure({&panels.front()}, crossover_order);
  REQUIRE(figure);
  const Json& rows = figure->spec["data"]["values"];
  std::map<std::string, int> kinds;
  for (const Json& row : rows) {
    ++kinds[row["series"].get<std::string>() + " " + row["kind"].get<std::string>()];
    if (row["series"] == "latte" && row["kind"] == "found") {
      CHECK(row["low"] == 100);
      CHECK(row["high"] == 120);
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
    if (layer["mark"].contains("filled") && layer["mark"]["filled"] == false) {
      hollow.insert(layer["mark"]["shape"].get<std::string>());
      std::size_t entries = 0;
      for (const char* channel : {"strokeDash", "strokeWidth", "strokeOpacity"}) {
        if (!layer["encoding"].contains(channel)) continue;
        ++entries;
        CHECK(layer["encoding"][channel]["legend"]["symbolType"] == layer["mark"]["shape"]);
        CHECK(layer["encoding"][channel]["scale"]["type"] == "ordinal");
      }
      CHECK(entries == 1);
    }
  }
  CHECK(hollow == std::set<std::string>{"triangle-down", "triangle-up"});  // those that there are
}

TEST_CASE("a cell without a place on the map is named in its caption", "[reports]") {
  Json result = map_result();
  result["attnbench"]["cells"][1]["status"] = "timeout";
  const auto panels = test::panels(result);
  const auto figure = reports::crossover_figure({&panels.front()}, crossover_order);
  REQUIRE(figure);
  CHECK_THAT(figure->caption, Catch::Contains("Not drawn: latte at 64 (scope mix"));
  CHECK_THAT(figure->caption, Catch::Contains("timeout"));
  for (Json& cell : result["attnbench"]["cells"]) cell["status"] = "timeout";
  const auto none = test::panels(result);
  CHECK_FALSE(reports::crossover_figure({&none.front()}, crossover_order));
}

TEST_CASE("tables hold the crossover's interval and both sides", "[reports]") {
  const Json result = map_result();
  const std::string markdown = reports::markdown_tables(result);
  CHECK_THAT(markdown, Catch::Contains("110 (100 to 120)"));
  CHECK_THAT(markdown, Catch::Contains("below 64"));
  CHECK_THAT(markdown, Catch::Contains("scope layer"));
  const std::string csv = reports::csv_table(result);
  CHECK_THAT(csv, Catch::Contains("crossover_length,crossover_length_low,crossover_length_high"));
  CHECK_THAT(csv, Catch::Contains("found,softmax/tiled"));
}

TEST_CASE("a disturbed crossover is not drawn, and is named", "[reports]") {
  Json result = map_result();
  Json& cell = result["attnbench"]["cells"][1];
  cell["status"] = "disturbed";
  const auto panels = test::panels(result);
  const auto figure = reports::crossover_figure({&panels.front()}, crossover_order);
  REQUIRE(figure);
  for (const Json& row : figure->spec["data"]["values"]) CHECK(row["id"] != cell["id"]);
  CHECK_THAT(figure->caption,
             Catch::Contains("Not drawn: latte at 64 (scope mix") && Catch::Contains("disturbed"));
}
