#include "reports/figures/figure.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <stdexcept>

#include "core/failure.hpp"
#include "core/result/document.hpp"
#include "tests/reports/figures/spec_parts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

Json fixture() {
  return result::read_result(test::source_folder() + "/tests/reports/fixture.json");
}

const std::vector<std::string> order{"softmax",           "flash",  "latte, scan",
                                     "latte, vectorised", "linear", "window"};

std::vector<reports::PublishedRow> none() { return {}; }

/// Every object inside of `value` that has `key`.
void collect(const Json& value, const std::string& key, std::vector<Json>& found) {
  if (value.is_object() && value.contains(key)) found.push_back(value);
  if (value.is_structured()) {
    for (const Json& part : value) collect(part, key, found);
  }
}

std::vector<Json> all_with(const Json& value, const std::string& key) {
  std::vector<Json> found;
  collect(value, key, found);
  return found;
}

}  // namespace

TEST_CASE("every figure has axes with titles, colours, a legend that filters, tooltips",
          "[reports]") {
  const Json result = fixture();
  for (const auto& panel : test::panels(result)) {
    for (const std::string& name : reports::figure_names()) {
      for (const auto& figure : reports::draw(name, panel, order, none())) {
        INFO(figure.name);
        const Json& spec = figure.spec;
        CHECK(spec["$schema"] == "https://vega.github.io/schema/vega-lite/v5.json");
        CHECK(spec["title"]["text"] == figure.title);
        CHECK_FALSE(figure.subtitle.empty());
        const Json& unit = test::unit_of(spec);
        CHECK(unit["encoding"]["x"]["title"] == "length T (tokens)");
        CHECK_FALSE(spec["data"]["values"].empty());
        const auto params = all_with(spec, "params");
        if (spec.contains("facet")) {  // the headers name the series, and nothing is to be chosen
          CHECK(params.empty());
          CHECK(all_with(unit["layer"], "param").empty());
        } else {
          CHECK(spec["width"] == "container");
          REQUIRE(params.size() == 1);
          CHECK(params[0]["params"][0]["bind"] == "legend");
        }
        CHECK_FALSE(all_with(unit["layer"], "tooltip").empty());
        for (const Json& encoding : all_with(unit["layer"], "y")) {
          if (encoding["y"].contains("title")) CHECK(encoding["y"]["title"].is_string());
        }
        for (const char letter : figure.name) CHECK((std::isalnum(letter) || letter == '_'));
      }
    }
  }
}

TEST_CASE("names of figures differ between panels", "[reports]") {
  const Json result = fixture();
  std::set<std::string> names;
  std::size_t count = 0;
  for (const auto& panel : test::panels(result)) {
    for (const std::string& name : reports::figure_names()) {
      for (const auto& figure : reports::draw(name, panel, order, none())) {
        names.insert(figure.name);
        ++count;
      }
    }
  }
  CHECK(names.size() == count);
  CHECK(names.contains("kernel_time_forward"));
  CHECK(names.contains("kernel_time_forward_backward"));
  CHECK(names.contains("decode_state"));
}

TEST_CASE("a point carries its provenance", "[reports]") {
  const Json result = fixture();
  const auto panels = test::panels(result);
  const auto figure = reports::draw("time", panels[0], order, none()).at(0);
  const Json rows = test::own_rows(figure.spec);
  const auto scan = std::find_if(rows.begin(), rows.end(), [](const Json& row) {
    return row["series"] == "latte, scan" && row["length"] == "1024";
  });
  REQUIRE(scan != rows.end());
  CHECK((*scan)["implementation"] == "scan");
  CHECK((*scan)["batch"] == "1");
  CHECK((*scan)["heads"] == "4");
  CHECK((*scan)["head_dim"] == "32");
  CHECK((*scan)["latents"] == "16");
  CHECK((*scan)["dtype"] == "float32");
  CHECK((*scan)["device"] == "cpu");
  CHECK((*scan)["scope"] == "mix");
  CHECK((*scan)["pattern"] == "causal");
  CHECK((*scan)["said"].get<std::string>().find(" ms") != std::string::npos);
  CHECK_THAT((*scan)["between"].get<std::string>(), Catch::Contains("range of 3 rounds"));
  CHECK((*scan)["y"].get<double>() == Approx(6.72).epsilon(0.02));  // in the axis' milliseconds
  CHECK_THAT(figure.subtitle, Catch::Contains("B=1, H=4, D=32, latents per head 16, causal"));
  CHECK_THAT(figure.subtitle, Catch::Contains("flash: tiled"));
}

TEST_CASE("sizes that double get logarithmic axes, others do not", "[reports]") {
  Json result = fixture();
  const auto doubled = reports::draw("time", test::panels(result)[0], order, none()).at(0);
  CHECK(test::unit_of(doubled.spec)["encoding"]["x"]["scale"]["type"] == "log");
  CHECK(test::layers_of(doubled.spec)[0]["encoding"]["y"]["scale"]["type"] == "log");
  for (Json& cell : result["attnbench"]["cells"]) {
    const double length = cell["settings"]["length"].get<double>();
    cell["settings"]["length"] = 1000 * std::log2(length / 128);  // 1000, 2000, 3000, …
  }
  const auto steps = reports::draw("time", test::panels(result)[0], order, none()).at(0);
  CHECK_FALSE(test::unit_of(steps.spec)["encoding"]["x"]["scale"].contains("type"));
}

TEST_CASE("a cell that ended without a number is marked, not forgotten", "[reports]") {
  const Json result = fixture();
  const auto panels = test::panels(result);
  const auto marks = [&](std::size_t panel) {
    const auto figure = reports::draw("time", panels[panel], order, none()).at(0);
    std::set<std::string> statuses;
    for (const Json& row : all_with(figure.spec, "slot"))
      statuses.insert(row["status"].get<std::string>());
    return statuses;
  };
  CHECK(marks(0) == std::set<std::string>{"wrong"});
  CHECK(marks(1) == std::set<std::string>{"out_of_memory", "timeout"});
  CHECK(marks(2).empty());
}

TEST_CASE("nothing allocated stands at the foot of a logarithmic axis, and is said to be 0",
          "[reports]") {
  const Json result = fixture();
  const auto figure = reports::draw("memory", test::panels(result)[0], order, none()).at(0);
  std::size_t zeros = 0;
  for (const Json& row : test::own_rows(figure.spec)) {
    CHECK(row["y"].get<double>() > 0);
    if (!row["zero"].get<bool>()) continue;
    ++zeros;
    CHECK(row["series"] == "flash");
    CHECK(row["said"] == "0 B");
  }
  CHECK(zeros == 6);
  CHECK_THAT(figure.caption, Catch::Contains("exactly 0"));
}

TEST_CASE("slopes are exponents between neighbours beside the claims", "[reports]") {
  const Json result = fixture();
  const auto figure = reports::draw("slopes", test::panels(result)[0], order, none()).at(0);
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
  for (const Json& row : all_with(test::unit_of(figure.spec)["layer"], "claim"))
    claims.insert(row["y"].get<double>());
  CHECK(claims == std::set<double>{1, 2});
  CHECK_THAT(figure.caption, Catch::Contains("latte, vectorised 0.99 (claimed 1: held)"));
}

TEST_CASE("slopes of the workspace stand beside its own claims", "[reports]") {
  const Json result = fixture();
  const auto figure = reports::draw("memory_slopes", test::panels(result)[0], order, none()).at(0);
  CHECK_THAT(figure.name, Catch::Contains("memory_slopes"));
  for (const Json& row : test::own_rows(figure.spec)) {
    CHECK(row["series"] != "flash");  // it has no workspace to grow
    if (row["series"] == "softmax") CHECK(row["y"].get<double>() == Approx(2.0).margin(0.05));
  }
  CHECK_THAT(figure.caption, Catch::Contains("softmax 2.00 (claimed 2: held)"));
}

TEST_CASE("slopes of a training step have no claim of the workspace", "[reports]") {
  const Json result = fixture();
  const auto panels = test::panels(result);
  REQUIRE(panels[1].facet_text() == "pass=forward+backward");
  const auto memory = reports::draw("memory_slopes", panels[1], order, none()).at(0);
  CHECK(all_with(test::unit_of(memory.spec)["layer"], "claim").empty());
  CHECK_THAT(memory.caption, Catch::Contains("Fitted") && !Catch::Contains("claimed"));
  const auto time = reports::draw("slopes", panels[1], order, none()).at(0);
  CHECK_FALSE(all_with(test::unit_of(time.spec)["layer"], "claim").empty());
}

TEST_CASE("claims are of the mix alone: other scopes have none", "[reports]") {
  Json result = fixture();
  for (Json& cell : result["attnbench"]["cells"]) {
    if (cell["settings"].contains("scope")) cell["settings"]["scope"] = "model";
  }
  const auto figure = reports::draw("slopes", test::panels(result)[0], order, none()).at(0);
  CHECK(all_with(test::unit_of(figure.spec)["layer"], "claim").empty());
  CHECK_THAT(figure.caption, !Catch::Contains("claimed"));
}

TEST_CASE("speedup is the first series' time over each one's, with bounds of both", "[reports]") {
  Json result = fixture();
  for (Json& cell : result["attnbench"]["cells"]) {
    if (cell["label"] == "softmax" && cell["settings"]["length"] == 8192)
      cell["status"] = "skipped";
  }
  const auto panel = test::panels(result)[0];
  const auto times = [&](const std::string& series, double x) -> Json {
    for (const auto& placed : panel.cells) {
      if (placed.series == series && *placed.x == x) return Json(placed.cell->timing.at("forward"));
    }
    throw std::out_of_range(series);
  };
  const auto figure = reports::draw("speedup", panel, order, none()).at(0);
  CHECK(figure.title == "Speedup over softmax");
  std::size_t others = 0;
  for (const Json& row : test::own_rows(figure.spec)) {
    const double x = row["x"].get<double>();
    CHECK(x < 8192);  // without a baseline there is nothing to compare with
    if (row["series"] == "softmax") {
      CHECK(row["y"] == 1);
      continue;
    }
    ++others;
    const Json& base = times("softmax", x);
    const Json& own = times(row["series"], x);
    CHECK(row["y"].get<double>() ==
          Approx(base["median_seconds"].get<double>() / own["median_seconds"].get<double>()));
    CHECK(row["low"].get<double>() ==
          Approx(base["low_seconds"].get<double>() / own["high_seconds"].get<double>()));
  }
  CHECK(others > 10);
  CHECK(reports::draw("speedup", panel, {"nobody", "softmax"}, none()).empty());
}

TEST_CASE("a figure over lengths of as many tokens each says how many", "[reports]") {
  Json result = fixture();
  for (Json& cell : result["attnbench"]["cells"]) {
    cell["problem"]["batch"] = 8192 / cell["problem"]["length"].get<int>();
  }
  const auto panels = test::panels(result);
  CHECK_THAT(reports::draw("time", panels[0], order, none()).at(0).subtitle,
             Catch::Contains("B·T=8192"));
  const Json plain = fixture();
  CHECK(reports::draw("time", test::panels(plain)[0], order, none()).at(0).subtitle.find("B·T") ==
        std::string::npos);
}

TEST_CASE("the roofline is coloured by what binds", "[reports]") {
  const Json result = fixture();
  const auto figure = reports::draw("roofline", test::panels(result)[0], order, none()).at(0);
  const auto colours = all_with(test::unit_of(figure.spec)["layer"], "color");
  CHECK(std::any_of(colours.begin(), colours.end(), [](const Json& encoding) {
    return encoding["color"].value("field", "") == "bound";
  }));
  for (const Json& row : test::own_rows(figure.spec)) CHECK(row["y"].get<double>() <= 1);
}

TEST_CASE("series that a panel does not have are not drawn", "[reports]") {
  const Json result = fixture();
  const auto panels = test::panels(result);
  CHECK(reports::draw("state", panels[0], order, none()).empty());
  CHECK(reports::draw("roofline", panels[2], order, none()).empty());
}

TEST_CASE("an unknown figure is refused by name", "[reports]") {
  const Json result = fixture();
  CHECK_THROWS_AS(reports::draw("tme", test::panels(result)[0], order, none()), UsageFailure);
  CHECK_THROWS_WITH(reports::draw("tme", test::panels(result)[0], order, none()),
                    Catch::Contains("tme") && Catch::Contains("slopes"));
}
