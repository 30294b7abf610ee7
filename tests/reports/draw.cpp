#include "reports/draw.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "core/failure.hpp"
#include "tests/reports/figures/spec_parts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

reports::Figure drawn(const std::string& name, const reports::Panel& panel) {
  return reports::draw(name, panel, test::fixture_palette, {}).at(0);
}
reports::Figure drawn(const std::string& name, const result::Result& result) {
  return drawn(name, test::first_panel(result));
}

/// Every object inside of `value` that has `key`.
std::vector<Json> all_with(const Json& value, const std::string& key) {
  std::vector<Json> found;
  if (value.is_object() && value.contains(key)) found.push_back(value);
  if (value.is_structured()) {
    for (const Json& part : value) {
      for (Json& one : all_with(part, key)) found.push_back(std::move(one));
    }
  }
  return found;
}

std::vector<Json> claims_in(const reports::Figure& figure) {
  return all_with(test::unit_of(figure.spec)["layer"], "claim");
}

}  // namespace

TEST_CASE("every figure has axes with titles, colours, labels or a legend that filter, tooltips",
          "[reports]") {
  std::set<std::string> names;
  std::size_t count = 0;
  for (const auto& panel : test::panels(test::fixture_result())) {
    for (const std::string& name : reports::figure_names()) {
      for (const auto& figure : reports::draw(name, panel, test::fixture_palette, {})) {
        INFO(figure.name);
        ++count;
        names.insert(figure.name);
        const Json& spec = figure.spec;
        CHECK(spec["$schema"] == "https://vega.github.io/schema/vega-lite/v5.json");
        CHECK(spec["title"]["text"] == figure.title);
        CHECK_FALSE(figure.subtitle.empty());
        const Json& unit = test::unit_of(spec);
        CHECK(unit["encoding"]["x"]["title"] == "length T (tokens)");
        CHECK_FALSE(spec["data"]["values"].empty());
        // Vega-Lite's schema has no null in the place of a channel; Altair refuses it.
        for (const Json& part : all_with(spec, "encoding")) {
          for (const Json& channel : part["encoding"]) CHECK_FALSE(channel.is_null());
        }
        const auto params = all_with(spec, "params");
        if (spec.contains("facet")) {  // the headers name the series, and nothing is to be chosen
          CHECK(params.empty());
          CHECK(all_with(unit["layer"], "param").empty());
        } else {
          CHECK(spec["width"] == "container");
          // A click on a line's label chooses it, or one on the legend's entry.
          REQUIRE(params.size() == 1);
          const bool labelled = params[0].contains("data") && params[0]["data"]["name"] == "labels";
          CHECK((labelled || params[0]["params"][0]["bind"] == "legend"));
          if (labelled) CHECK(unit["encoding"]["color"]["legend"].is_null());
        }
        CHECK_FALSE(all_with(unit["layer"], "tooltip").empty());
        for (const char letter : figure.name) CHECK((std::isalnum(letter) || letter == '_'));
      }
    }
  }
  CHECK(names.size() == count);
  CHECK(names.contains("kernel_time_forward"));
  CHECK(names.contains("kernel_time_forward_backward"));
  CHECK(names.contains("decode_state"));
}

TEST_CASE("a point carries its provenance", "[reports]") {
  const auto figure = drawn("time", test::fixture_result());
  const Json rows = test::own_rows(figure.spec);
  const auto scan = std::find_if(rows.begin(), rows.end(), [](const Json& row) {
    return row["series"] == "latte, scan" && row["length"] == "1024";
  });
  REQUIRE(scan != rows.end());
  for (const auto& [key, value] : std::map<std::string, std::string>{{"implementation", "scan"},
                                                                     {"batch", "1"},
                                                                     {"heads", "4"},
                                                                     {"head_dim", "32"},
                                                                     {"latents", "16"},
                                                                     {"dtype", "float32"},
                                                                     {"device", "cpu"},
                                                                     {"scope", "mix"},
                                                                     {"pattern", "causal"}}) {
    CHECK((*scan)[key] == value);
  }
  CHECK_THAT((*scan)["said"].get<std::string>(), Catch::Contains(" ms"));
  CHECK_THAT((*scan)["between"].get<std::string>(), Catch::Contains("range of 3 rounds"));
  CHECK((*scan)["y"].get<double>() == Approx(6.72).epsilon(0.02));  // in the axis' milliseconds
  CHECK_THAT(figure.subtitle, Catch::Contains("B=1, H=4, D=32, latents per head 16, causal") &&
                                  Catch::Contains("tiled: flash") && !Catch::Contains("B·T"));
  // Lengths with as many tokens each.
  result::Result even = test::fixture_result();
  for (result::CellRecord& cell : even.cells) {
    cell.problem["batch"] = 8192 / cell.problem["length"].get<int>();
  }
  CHECK_THAT(drawn("time", even).subtitle, Catch::Contains("B·T=8192"));
}

TEST_CASE("sizes that double get logarithmic axes, others do not", "[reports]") {
  result::Result result = test::fixture_result();
  const auto doubled = drawn("time", result);
  CHECK(test::unit_of(doubled.spec)["encoding"]["x"]["scale"]["type"] == "log");
  CHECK(test::layers_of(doubled.spec)[0]["encoding"]["y"]["scale"]["type"] == "log");
  for (result::CellRecord& cell : result.cells) {
    const double length = cell.settings["length"].get<double>();
    cell.settings["length"] = 1000 * std::log2(length / 128);  // 1000, 2000, 3000, …
  }
  const auto steps = drawn("time", result);
  CHECK_FALSE(test::unit_of(steps.spec)["encoding"]["x"]["scale"].contains("type"));
}

TEST_CASE("a cell that ended without a number is marked, not forgotten", "[reports]") {
  std::vector<std::set<std::string>> marks;
  for (const auto& panel : test::panels(test::fixture_result())) {
    std::set<std::string>& statuses = marks.emplace_back();
    for (const Json& row : all_with(drawn("time", panel).spec, "slot"))
      statuses.insert(row["status"].get<std::string>());
  }
  using Marks = std::vector<std::set<std::string>>;
  CHECK(marks == Marks{{"wrong"}, {"out_of_memory", "timeout"}, {}});
}

TEST_CASE("nothing allocated stands at the foot of a logarithmic axis, and is said to be 0",
          "[reports]") {
  const auto figure = drawn("memory", test::fixture_result());
  std::size_t zeros = 0;
  for (const Json& row : test::own_rows(figure.spec)) {
    CHECK(row["y"].get<double>() > 0);
    if (!row["zero"].get<bool>()) continue;
    ++zeros;
    CHECK((row["series"] == "flash" && row["said"] == "0 B"));
  }
  CHECK(zeros == 6);
  CHECK_THAT(figure.caption, Catch::Contains("exactly 0"));
}

TEST_CASE("slopes are exponents between neighbours beside the claims", "[reports]") {
  const auto panels = test::panels(test::fixture_result());
  const auto figure = drawn("slopes", panels[0]);
  std::size_t large = 0;
  for (const Json& row : test::own_rows(figure.spec)) {
    if (!row["large"].get<bool>()) continue;
    ++large;
    const bool square = row["series"] == "softmax" || row["series"] == "flash";
    CHECK(row["y"].get<double>() == Approx(square ? 2.0 : 1.0).margin(0.1));
    CHECK(row["low"].get<double>() <= row["y"].get<double>());
    CHECK(row["high"].get<double>() >= row["y"].get<double>());
  }
  CHECK(large > 5);
  CHECK(large < test::own_rows(figure.spec).size());
  std::set<double> claims;
  for (const Json& row : claims_in(figure)) claims.insert(row["y"].get<double>());
  CHECK(claims == std::set<double>{1, 2});
  // Its longest length is missing.
  CHECK_THAT(figure.caption, Catch::Contains("latte, vectorised 0.99 (claimed 1: cannot tell)"));

  const auto memory = drawn("memory_slopes", panels[0]);
  CHECK_THAT(memory.name, Catch::Contains("memory_slopes"));
  for (const Json& row : test::own_rows(memory.spec)) {
    CHECK(row["series"] != "flash");  // it has no workspace to grow
    if (row["series"] == "softmax") CHECK(row["y"].get<double>() == Approx(2.0).margin(0.05));
  }
  CHECK_THAT(memory.caption, Catch::Contains("softmax 2.00 (claimed 2: held)"));
}

TEST_CASE("claims are of the mix and its time or the forward's workspace alone", "[reports]") {
  result::Result result = test::fixture_result();
  const auto step = test::panels(result).at(1);
  REQUIRE(step.facet_text() == "pass=forward+backward");
  const auto memory = drawn("memory_slopes", step);
  CHECK(claims_in(memory).empty());
  CHECK_THAT(memory.caption, Catch::Contains("Fitted") && !Catch::Contains("claimed"));
  CHECK_FALSE(claims_in(drawn("slopes", step)).empty());
  for (result::CellRecord& cell : result.cells) {
    if (cell.settings.contains("scope")) cell.settings["scope"] = "model";
  }
  const auto other = drawn("slopes", result);
  CHECK(claims_in(other).empty());
  CHECK_THAT(other.caption, !Catch::Contains("claimed"));
}

TEST_CASE("speedup is the first series' time over each one's, with bounds of both", "[reports]") {
  result::Result result = test::fixture_result();
  for (result::CellRecord& cell : result.cells) {
    if (cell.label == "softmax" && cell.settings["length"] == 8192) cell.status = Status::skipped;
  }
  const auto panel = test::first_panel(result);
  const auto time = [&](const std::string& series, const Json& x) -> const result::Timing& {
    const auto found = std::find_if(panel.cells.begin(), panel.cells.end(), [&](const auto& one) {
      return one.series == series && *one.x == x;
    });
    return found->cell->timing.at("forward");
  };
  const auto figure = drawn("speedup", panel);
  CHECK(figure.title == "Speedup over softmax");
  std::size_t others = 0;
  for (const Json& row : test::own_rows(figure.spec)) {
    CHECK(row["x"].get<double>() < 8192);  // without a baseline there is nothing to compare with
    if (row["series"] == "softmax") {
      CHECK(row["y"] == 1);
      continue;
    }
    ++others;
    const result::Timing& base = time("softmax", row["x"]);
    const result::Timing& own = time(row["series"], row["x"]);
    CHECK(row["y"].get<double>() == Approx(base.median_seconds / own.median_seconds));
    CHECK(row["low"].get<double>() == Approx(base.low_seconds / own.high_seconds));
  }
  CHECK(others > 10);
  CHECK(reports::draw("speedup", panel, {"nobody", "softmax"}, {}).empty());
}

TEST_CASE("the roofline is coloured by what binds", "[reports]") {
  const auto figure = drawn("roofline", test::fixture_result());
  const auto colours = all_with(test::unit_of(figure.spec)["layer"], "color");
  CHECK(std::any_of(colours.begin(), colours.end(), [](const Json& encoding) {
    return encoding["color"].value("field", "") == "bound";
  }));
  for (const Json& row : test::own_rows(figure.spec)) CHECK(row["y"].get<double>() <= 1);
}

TEST_CASE("what a panel does not have is not drawn, an unknown figure is refused by name",
          "[reports]") {
  const auto panels = test::panels(test::fixture_result());
  CHECK(reports::draw("state", panels[0], test::fixture_palette, {}).empty());
  CHECK(reports::draw("roofline", panels[2], test::fixture_palette, {}).empty());
  CHECK_THROWS_AS(drawn("tme", panels[0]), UsageFailure);
  CHECK_THROWS_WITH(drawn("tme", panels[0]), Catch::Contains("tme") && Catch::Contains("slopes"));
}

TEST_CASE("a figure of times marks where a line crosses exact attention", "[reports]") {
  std::vector<result::CellRecord> cells;
  for (const auto& [length, exact, linear] :
       {std::tuple(256, 1e-3, 2e-3), std::tuple(512, 4e-3, 4e-3), std::tuple(1024, 16e-3, 8e-3)}) {
    for (const auto& [label, seconds] :
         {std::pair("softmax", exact), std::pair("linear", linear)}) {
      test::CellBuilder cell(label);
      cell.named(label + std::to_string(length)).length(length).took(seconds);
      cells.push_back(cell.rounds({seconds * 0.99, seconds, seconds * 1.01}));
    }
  }
  const auto result = test::result_of(cells);
  const auto drawn = reports::draw("time", test::first_panel(result), {"softmax", "linear"}, {});
  Json marks;
  for (const Json& layer : test::layers_of(drawn.at(0).spec)) {
    if (layer.contains("data") && layer["data"]["name"] == "crossings") {
      marks = layer["data"]["values"];
    }
  }
  REQUIRE(marks.size() == 1);
  CHECK(marks[0]["series"] == "linear");
  CHECK(marks[0]["x"].get<double>() == Approx(512));
  CHECK(marks[0]["y"].get<double>() == Approx(4));  // on the line, in its unit
  CHECK(marks[0]["left"] < marks[0]["x"]);
  CHECK(marks[0]["right"] > marks[0]["x"]);
  CHECK_THAT(drawn.at(0).caption, Catch::Contains("Rings: where a line crosses"));
  // Without a crossing there is no layer, which Vega would warn of.
  for (result::CellRecord& cell : cells) {
    if (cell.label == "softmax") cell.timing.clear();
  }
  const auto none = test::result_of(cells);
  const auto plain = reports::draw("time", test::first_panel(none), {"softmax", "linear"}, {});
  CHECK_THAT(plain.at(0).spec.dump(), !Catch::Contains("crossings"));
}

TEST_CASE("what follows a paper's figure is drawn on its axes, too, memory beside time",
          "[reports]") {
  std::vector<result::CellRecord> cells;
  for (const int length : {256, 512, 1024}) {
    test::CellBuilder cell("softmax");
    cell.named(std::to_string(length)).length(length).took(1e-9 * length * length);
    cell.memory["peak_bytes"] = 1024.0 * length;
    cells.push_back(cell);
  }
  const auto result = test::result_of(cells);
  reports::Panel panel = test::first_panel(result);
  const auto drawn = [&](const char* name) { return reports::draw(name, panel, {"softmax"}, {}); };
  REQUIRE(drawn("time").size() == 1);
  CHECK(test::layers_of(drawn("time")[0].spec)[0]["encoding"]["y"]["title"] == "time (µs)");
  panel.paper = {"Latte v1, Figure 2", "the authors' code", false, "ms", "MiB"};
  const auto figures = drawn("time");
  REQUIRE(figures.size() == 3);
  CHECK(figures[0].what == "time");
  CHECK(figures[1].name == "kernel_paper_time");
  CHECK(figures[2].name == "kernel_paper_peak_memory");
  CHECK(figures[1].title == figures[0].title + ", on the paper's axes");
  CHECK_THAT(figures[1].caption,
             Catch::Contains(" Axes as in Latte v1, Figure 2, by the authors' code."));
  const auto axis = [](const reports::Figure& figure) {
    return test::layers_of(figure.spec)[0]["encoding"]["y"];
  };
  // Its units in all figures, its scale in those on its axes.
  CHECK(axis(figures[0])["title"] == "time (ms)");
  CHECK(axis(figures[0])["scale"]["type"] == "log");
  CHECK(axis(figures[1])["title"] == "time (ms)");
  CHECK_FALSE(axis(figures[1])["scale"].contains("type"));
  CHECK(axis(figures[1])["scale"]["domain"][0] == 0);
  CHECK(axis(figures[2])["title"] == "peak (MiB)");
  CHECK(figures[0].spec["encoding"]["x"]["scale"]["type"] == "log");
  CHECK_FALSE(figures[1].spec["encoding"]["x"]["scale"].contains("type"));
  CHECK(axis(drawn("memory").back())["title"] == "peak (MiB)");
  // A paper that has logarithmic axes, no memory, or only a unit adds nothing of that.
  panel.paper.memory_unit.clear();
  CHECK(drawn("time").size() == 2);
  for (const std::optional<bool> scale : {std::optional<bool>(true), std::optional<bool>()}) {
    panel.paper.logarithmic = scale;
    CHECK(drawn("time").size() == 1);
  }
}
