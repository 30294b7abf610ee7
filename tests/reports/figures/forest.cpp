#include "reports/figures/kinds.hpp"

#include "reports/page/page.hpp"
#include "reports/report.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

reports::PairVerdict pair_with(const std::string& name, const std::string& verdict, double ratio,
                               double low, double high) {
  reports::PairVerdict made;
  made.name = name;
  made.timing = "forward";
  made.verdict = verdict;
  made.ratio = ratio;
  made.ratio_low = low;
  made.ratio_high = high;
  return made;
}

reports::Verdicts three_pairs() {
  reports::Verdicts verdicts;
  verdicts.turns = {"latte/scan", "latte/fused", 0.03, 0.975};
  verdicts.pairs = {pair_with("length=256", "FAST", 0.5, 0.45, 0.6),
                    pair_with("length=512", "SLOW", 1.2, 1.1, 1.3)};
  verdicts.pairs[0].control = reports::SelfRatio{0.98, 1.01};
  reports::PairVerdict untimed;
  untimed.name = "length=1024";
  untimed.verdict = "UNCLEAR";
  verdicts.pairs.push_back(untimed);
  return verdicts;
}

/// The first layer whose mark has this type and whose data are the figure's.
Json layer_of(const Json& spec, const std::string& type, const std::string& field) {
  for (const Json& layer : spec["layer"]) {
    if (layer["mark"]["type"] == type && layer["encoding"]["x"]["field"] == field) return layer;
  }
  return {};
}

}  // namespace

TEST_CASE("a forest of results measured apart says what its points and bars are", "[reports]") {
  reports::Verdicts verdicts = three_pairs();
  CHECK_THAT(reports::forest_figure(verdicts)->caption, Catch::Contains("in the same round"));
  verdicts.turns.apart = "Both: one machine.";
  const auto figure = reports::forest_figure(verdicts);
  CHECK_THAT(figure->caption, !Catch::Contains("in the same round") &&
                                  Catch::Contains("the median time of new over that of base"));
  CHECK(figure->name == "side_by_side_ratios");
}

TEST_CASE("a forest has a line for each pair with a ratio, and names the others", "[reports]") {
  const auto figure = reports::forest_figure(three_pairs());
  REQUIRE(figure);
  const Json& rows = figure->spec["data"]["values"];
  REQUIRE(rows.size() == 2);
  CHECK(rows[0]["pair"] == "length=256 forward");
  CHECK(rows[0]["low"] == 0.45);
  CHECK(rows[0]["said"] == "0.500 [0.450, 0.600]");
  CHECK_THAT(rows[0]["verdict"].get<std::string>(), Catch::Contains("FAST"));
  CHECK_THAT(figure->caption,
             Catch::Contains("and so not here: length=1024.") && Catch::Contains("margin of 3 %"));
  const Json points = layer_of(figure->spec, "point", "ratio");
  CHECK(points["encoding"]["y"]["sort"] == Json({"length=256 forward", "length=512 forward"}));
  CHECK(points["encoding"]["color"]["scale"]["domain"].size() == 2);  // those that there are
  CHECK(points["encoding"]["x"]["scale"]["domain"] == Json({0.45, 1.3}));
  const Json again = layer_of(figure->spec, "rule", "again_low");
  CHECK(again["encoding"]["x2"]["field"] == "again_high");
  const Json margin = layer_of(figure->spec, "rect", "from");
  CHECK(margin["data"]["values"][0]["to"].get<double>() == Approx(1.03));
}

TEST_CASE("no ratio, or none that can be drawn, is no forest", "[reports]") {
  reports::Verdicts verdicts = three_pairs();
  verdicts.pairs.erase(verdicts.pairs.begin(), verdicts.pairs.begin() + 2);
  CHECK_FALSE(reports::forest_figure(verdicts));
  verdicts.pairs = {pair_with("length=256", "UNCLEAR", 1, 0, 2)};  // a logarithm of 0
  CHECK_FALSE(reports::forest_figure(verdicts));
}

TEST_CASE("the page of ab has the forest before its table, and the other figures after",
          "[reports]") {
  reports::Section section;
  section.verdicts = three_pairs();
  section.figures = {*reports::forest_figure(three_pairs()),
                     *reports::forest_figure(three_pairs())};
  section.figures[1].group = "kernel";
  section.verdict_figures = 1;
  section.svg = {"<svg></svg>", "<svg></svg>"};
  const std::string page = reports::page({section}, "var bundle;", "");
  std::size_t last = 0;
  for (const char* one : {">Verdicts</h2>", "data-spec=\"spec-0-0\"", "0.500 [0.450, 0.600]</td>",
                          ">Figures</h2>", "data-spec=\"spec-0-1\""}) {
    INFO(one);
    const std::size_t at = page.find(one);
    REQUIRE(at != std::string::npos);
    CHECK(at > last);
    last = at;
  }
}
