#include "reports/figures/kinds.hpp"

#include <set>

#include "core/result/document.hpp"
#include "reports/figures/figure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

/// The stored quickstart, with `labels` series.
Json crowd(std::size_t labels) {
  Json result =
      result::read_result(test::source_folder() + "/tests/reports/fixtures/quickstart.json");
  std::set<std::string> kept;
  Json cells = Json::array();
  for (const Json& cell : result["attnbench"]["cells"]) {
    if (cell["task_label"] != "forward") continue;
    if (kept.size() < labels) kept.insert(cell["label"].get<std::string>());
    if (kept.contains(cell["label"])) cells.push_back(cell);
  }
  result["attnbench"]["cells"] = cells;
  return result;
}

reports::Figure time_figure(const Json& result) {
  const auto panel = test::panels(result)[0];
  return reports::draw("time", panel, panel.series, {}).at(0);
}

}  // namespace

TEST_CASE("six series are small multiples, five are one picture", "[reports]") {
  const auto five = time_figure(crowd(5));
  CHECK_FALSE(five.spec.contains("facet"));
  CHECK(five.spec["width"] == "container");
  const auto six = time_figure(crowd(6));
  REQUIRE(six.spec.contains("facet"));
  CHECK(six.spec["facet"]["sort"].size() == 6);
  CHECK(six.spec["facet"]["field"] == "series");
  CHECK_THAT(six.caption, Catch::Contains("Grey: the others."));
  CHECK_THAT(five.caption, !Catch::Contains("Grey: the others."));
}

TEST_CASE("each facet has its own marks over the lines of all, on one scale", "[reports]") {
  const auto figure = time_figure(crowd(6));
  const Json& unit = figure.spec["spec"];
  const Json& background = unit["layer"][0];
  CHECK(background["data"]["name"] == "others");
  const Json& rows = background["data"]["values"];
  CHECK(rows.size() == figure.spec["data"]["values"].size());
  for (const Json& row : rows) CHECK_FALSE(row.contains("series"));  // facets would divide it
  const Json& scale = background["encoding"]["y"]["scale"];
  REQUIRE(scale.contains("domain"));
  for (const Json& row : figure.spec["data"]["values"]) {
    CHECK(row["low"].get<double>() >= scale["domain"][0].get<double>());
    CHECK(row["high"].get<double>() <= scale["domain"][1].get<double>());
  }
  CHECK(unit["encoding"]["color"]["legend"].is_null());
}

TEST_CASE("a mark of a failure stands in the facet of its series alone", "[reports]") {
  Json result = crowd(6);
  Json& cell = result["attnbench"]["cells"][0];
  cell["status"] = "crashed";
  cell["reason"] = "the process was killed by signal 11";
  const auto figure = time_figure(result);
  std::size_t failed = 0;
  for (const Json& row : figure.spec["data"]["values"]) {
    if (!row.contains("part")) continue;
    ++failed;
    CHECK(row["series"] == cell["label"]);
    CHECK(row["status"] == "crashed");
  }
  CHECK(failed == 1);
  const Json& layer = figure.spec["spec"]["layer"].back();
  CHECK_FALSE(layer.contains("data"));
  CHECK(layer["encoding"]["y"]["value"] == 6);
  CHECK(layer["transform"][0]["filter"] == "datum.part == 'part 1'");
}

TEST_CASE("a line that belongs to no series keeps its data in every facet", "[reports]") {
  const Json data = {{"values", {{{"y", 2.8}, {"what", "counts after two bytes"}}}}};
  const Json rule = {{"mark", "rule"}, {"encoding", {{"y", {{"field", "y"}}}}}};
  const Json words = {{"mark", "text"}, {"encoding", {{"y", {{"field", "y"}}}}}};
  const Json spec = {{"data", {{"values", Json::array()}}},
                     {"layer", {{{"data", data}, {"layer", {rule, words}}}}}};
  const Json drawn = reports::small_multiples(spec, test::panels(crowd(6))[0]);
  REQUIRE(drawn["spec"]["layer"].size() == 2);
  for (const Json& layer : drawn["spec"]["layer"]) {
    CHECK(layer["data"] == data);
    CHECK_FALSE(layer.contains("transform"));
  }
}
