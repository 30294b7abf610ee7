#include "reports/figures/kinds.hpp"

#include <cmath>
#include <set>

#include "reports/draw.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

/// The stored quickstart, with `labels` series: further ones are the first again, by other names.
result::Result crowd(std::size_t labels) {
  result::Result result = test::fixture_result("fixtures/quickstart");
  std::set<std::string> kept;
  std::erase_if(result.cells, [&](const result::CellRecord& cell) {
    if (cell.task_label != "forward") return true;
    if (kept.size() < labels) kept.insert(cell.label);
    return !kept.contains(cell.label);
  });
  const std::string first = result.cells.at(0).label;
  const std::vector<result::CellRecord> cells = result.cells;
  for (std::size_t i = kept.size(); i < labels; ++i) {
    for (result::CellRecord cell : cells) {
      if (cell.label != first) continue;
      cell.label += " " + std::to_string(i);
      cell.id += std::to_string(i);
      result.suite.labels->push_back(cell.label);
      result.cells.push_back(std::move(cell));
    }
  }
  return result;
}

reports::Figure time_figure(const result::Result& result) {
  const auto panel = test::first_panel(result);
  return reports::draw("time", panel, reports::Palette(panel.series), {}).at(0);
}

}  // namespace

TEST_CASE("fourteen lines are one picture, fifteen are small multiples", "[reports]") {
  const auto fourteen = time_figure(crowd(14));
  CHECK_FALSE(fourteen.spec.contains("facet"));
  CHECK_THAT(fourteen.caption, !Catch::Contains("Grey: the others."));
  CHECK(fourteen.spec["encoding"]["color"]["legend"].is_null());
  const auto many = time_figure(crowd(15));
  REQUIRE(many.spec.contains("facet"));
  CHECK(many.spec["facet"]["sort"].size() == 15);
  CHECK(many.spec["facet"]["field"] == "series");
  CHECK_THAT(many.caption, Catch::Contains("Grey: the others."));
  // Each facet has its own marks over the lines of all, on one scale.
  const Json& unit = many.spec["spec"];
  const Json& background = unit["layer"][0];
  CHECK(background["data"]["name"] == "others");
  const Json& rows = background["data"]["values"];
  std::size_t exact = 0;
  std::set<std::string> names;  // Vega refuses two data sets of one name
  for (const Json& layer : unit["layer"]) {
    if (!layer.contains("data")) continue;
    const std::string name = layer["data"]["name"];
    if (name.starts_with("exact ")) exact += layer["data"]["values"].size();
    CHECK(names.insert(name).second);
  }
  CHECK(names.size() > 2);  // of several implementations of exact attention
  CHECK(rows.size() + exact == test::own_rows(many.spec).size());
  for (const Json& row : rows) CHECK_FALSE(row.contains("series"));  // facets would divide it
  const Json& scale = background["encoding"]["y"]["scale"];
  REQUIRE(scale.contains("domain"));
  for (const Json& row : test::own_rows(many.spec)) {
    CHECK(row["low"].get<double>() >= scale["domain"][0].get<double>());
    CHECK(row["high"].get<double>() <= scale["domain"][1].get<double>());
  }
  CHECK(unit["encoding"]["color"]["legend"].is_null());
}

TEST_CASE("a mark of a failure stands in the facet of its series alone", "[reports]") {
  result::Result result = crowd(15);
  result.cells[0].status = Status::crashed;
  const auto figure = time_figure(result);
  std::size_t failed = 0;
  for (const Json& row : figure.spec["data"]["values"]) {
    if (!row.contains("part")) continue;
    ++failed;
    CHECK((row["series"] == result.cells[0].label && row["status"] == "crashed"));
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
  const Json drawn = reports::small_multiples(spec, test::first_panel(crowd(6)), {});
  REQUIRE(drawn["spec"]["layer"].size() == 2);
  for (const Json& layer : drawn["spec"]["layer"]) {
    CHECK(layer["data"] == data);
    CHECK_FALSE(layer.contains("transform"));
  }
}

TEST_CASE("exact attention and the crossing with it stand in every facet", "[reports]") {
  std::vector<result::CellRecord> cells;
  for (int i = 0; i < 15; ++i) {
    for (const int length : {256, 512, 1024}) {
      test::CellBuilder cell(i == 0 ? "softmax" : "m" + std::to_string(i));
      // Those of even numbers grow with the length and cross; the others are slower throughout.
      const double slow = i % 2 == 0 ? 1.5 * length / 256 : 20.0 * length / 256;
      cell.named(cell.label + std::to_string(length)).length(length);
      const double seconds = i == 0 ? std::pow(length / 256.0, 2) : slow;
      cell.took(seconds);
      cells.push_back(cell.rounds({seconds * 0.99, seconds, seconds * 1.01}));
    }
  }
  const auto panel = test::first_panel(test::result_of(cells));
  const reports::Palette palette(panel.series);
  const auto figure = reports::draw("time", panel, palette, {}).at(0);
  REQUIRE(figure.spec.contains("facet"));
  CHECK_THAT(figure.caption, Catch::Contains("Thin in every panel: exact attention (softmax)."));
  const Json& layers = figure.spec["spec"]["layer"];
  CHECK(layers[0]["data"]["values"].size() == 14 * 3);
  const Json& exact = layers[1];
  CHECK(exact["data"]["values"].size() == 3);
  CHECK(exact["mark"]["type"] == "line");
  CHECK(exact["encoding"]["color"]["value"] == palette.of("softmax").colour);
  for (const Json& row : exact["data"]["values"]) CHECK_FALSE(row.contains("series"));
  std::set<std::string> crossed;
  for (const Json& row : figure.spec["data"]["values"]) {
    if (row.contains("said") && row.contains("left")) crossed.insert(row["series"]);
  }
  CHECK(crossed == std::set<std::string>{"m2", "m4", "m6", "m8", "m10", "m12", "m14"});
}

TEST_CASE("what exact attention has at one place is a point in every facet", "[reports]") {
  std::vector<result::CellRecord> cells;
  for (int i = 0; i < 7; ++i) {
    test::CellBuilder cell(i == 0 ? "softmax" : "m" + std::to_string(i));
    cells.push_back(cell.length(256).took(i + 1));
  }
  const auto figure = time_figure(test::result_of(cells));
  REQUIRE(figure.spec.contains("facet"));
  CHECK(figure.spec["spec"]["layer"][1]["mark"]["type"] == "point");
}

TEST_CASE("a title that is longer than a facet is high stands in several lines", "[reports]") {
  const Json y = {{"field", "y"}, {"title", "accuracy on the validation split"}};
  const Json spec = {{"data", {{"values", Json::array()}}},
                     {"layer", {{{"mark", "line"}, {"encoding", {{"y", y}}}}}}};
  const Json drawn = reports::small_multiples(spec, test::first_panel(crowd(6)), {});
  CHECK(drawn["spec"]["layer"][0]["encoding"]["y"]["title"] ==
        Json::array({"accuracy on the", "validation split"}));
}
