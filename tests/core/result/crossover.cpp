#include "core/result/crossover.hpp"

#include "core/failure.hpp"
#include "core/schema/result_check.hpp"
#include "reports/tables/layout.hpp"
#include "reports/tables/tables.hpp"
#include "tests/reports/tables/crossover_cells.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench;
using test::Json;
using test::round_of;

namespace {

Json crossover_over(const std::vector<Json>& rounds) {
  std::vector<result::CrossoverRound> typed;
  for (const Json& round : rounds) typed.push_back(round.get<result::CrossoverRound>());
  return result::crossover_over(typed);
}

std::string crossover_text(const Json& joined) {
  return result::crossover_text(joined.get<result::Crossover>());
}

}  // namespace

TEST_CASE("a crossover over rounds is their middle, bounded by their ends", "[result]") {
  const Json joined = crossover_over(
      {round_of("found", 300, 320), round_of("found", 280, 290), round_of("found", 400, 420)});
  CHECK(joined["verdict"] == "found");
  CHECK(joined["length"].get<double>() == Approx(309.8).epsilon(1e-3));
  CHECK(joined["low"] == 280);
  CHECK(joined["high"] == 420);
  CHECK(joined["interval"] == "range");
  CHECK(crossover_text(joined) == "310 (280 to 420)");
  CHECK(joined["rounds"].size() == 3);
  CHECK(joined["against"] == "softmax/tiled");
}

TEST_CASE("one round has its search's interval, six an order-statistic one", "[result]") {
  const Json one = crossover_over({round_of("found", 300, 320)});
  CHECK(one["interval"] == "search");
  CHECK(one["low"] == 300);
  std::vector<Json> rounds;
  for (int i = 0; i < 12; ++i) rounds.push_back(round_of("found", 100 + i, 200 + i));
  rounds[0] = round_of("below", 0, 64);
  const Json twelve = crossover_over(rounds);
  CHECK(twelve["interval"] == "order");
  CHECK(twelve["low"] == 102);  // ranks 3 and 10 of 12
  CHECK(twelve["high"] == 209);
}

TEST_CASE("rounds beyond what was searched leave an end open, not out", "[result]") {
  const Json some = crossover_over(
      {round_of("below", 0, 64), round_of("found", 70, 75), round_of("found", 80, 85)});
  CHECK(some["verdict"] == "found");
  CHECK_FALSE(some.contains("low"));
  CHECK(crossover_text(some) == "72 (up to 85)");
  const Json below = crossover_over(
      {round_of("below", 0, 64), round_of("below", 0, 64), round_of("found", 80, 85)});
  CHECK(below["verdict"] == "below");
  CHECK_FALSE(below.contains("length"));
  CHECK(crossover_text(below) == "below 85");
  const Json above = crossover_over(
      {round_of("above", 4096, 0), round_of("none", 4096, 0), round_of("above", 4096, 0)});
  CHECK(crossover_text(above) == "above 4096");
  const Json none = crossover_over(
      {round_of("none", 4096, 0), round_of("none", 4096, 0), round_of("above", 4096, 0)});
  CHECK(crossover_text(none) == "none: slower up to 4096");
}

TEST_CASE("with an even count no length is claimed that half did not find", "[result]") {
  CHECK(crossover_over({round_of("found", 100, 110), round_of("above", 4096, 0)})["verdict"] ==
        "above");
  CHECK(crossover_over({round_of("found", 100, 110), round_of("below", 0, 64)})["verdict"] ==
        "below");
  CHECK(crossover_over({round_of("above", 4096, 0), round_of("below", 0, 64)})["verdict"] ==
        "undecided");
}

TEST_CASE("disturbed rounds vote for nothing", "[result]") {
  const auto disturbed = [](Json round) {
    round["disturbed"] = true;
    return round;
  };
  const Json quiet = round_of("found", 300, 320);
  const Json far = disturbed(round_of("found", 4000, 4090));
  const Json joined = crossover_over({far, far, quiet, disturbed(round_of("above", 4096, 0))});
  CHECK(joined["verdict"] == "found");
  CHECK(joined["low"] == 300);
  CHECK(joined["high"] == 320);
  CHECK(joined["verdicts"] == Json{{"found", 1}});
  CHECK(joined["disturbed"] == 3);
  CHECK(joined["rounds"].size() == 4);
  const Json none = crossover_over({far, far, far});
  CHECK(none["verdict"] == "undecided");
  CHECK_FALSE(none.contains("length"));
  CHECK(crossover_text(none) == "undecided, 3 of 3 rounds disturbed");
  CHECK(none["length_maximum"] == 4096);
  CHECK_FALSE(crossover_over({quiet}).contains("disturbed"));
}

TEST_CASE("a search whose comparisons were mostly disturbed has no vote", "[result]") {
  Json round = round_of("above", 4096, 0);
  for (const char* stop : {"disturbed", "disturbed", "decided"}) {
    round["lengths"].push_back({{"length", 64}, {"stop", stop}});
  }
  round["lengths"].push_back({{"length", 8192}, {"faster", "untried"}});
  CHECK(crossover_over({round, round_of("found", 300, 320)})["verdict"] == "found");
  round["lengths"].push_back({{"length", 128}, {"stop", "decided"}});
  CHECK(crossover_over({round, round_of("found", 300, 320)})["verdict"] == "above");
}

TEST_CASE("several crossings, and rounds that do not agree, are said as they are", "[result]") {
  Json twice = round_of("several", 0, 0);
  twice["crossings"] = {{{"low", 90}, {"high", 100}, {"faster_from_high", "mechanism"}},
                        {{"low", 700}, {"high", 720}, {"faster_from_high", "exact"}}};
  const Json several = crossover_over({twice, twice, round_of("found", 90, 100)});
  CHECK(several["verdict"] == "several");
  CHECK(crossover_text(several) == "several: 95, 710");
  CHECK(crossover_over({twice, round_of("undecided", 0, 0),
                        round_of("reverse", 5, 6)})["verdict"] == "undecided");
  const Json one_odd =
      crossover_over({twice, round_of("found", 90, 100), round_of("found", 92, 99)});
  CHECK(one_odd["verdict"] == "found");
  CHECK(one_odd["verdicts"]["several"] == 1);
}

TEST_CASE("the efficiency length is the median of the fits", "[result]") {
  std::vector<Json> rounds(3, round_of("found", 100, 110));
  for (int i = 0; i < 2; ++i) {
    rounds[static_cast<std::size_t>(i)]["efficiency"] = {
        {"length", 500.0 + 100 * i}, {"r2_exact", 0.99}, {"r2_mechanism", 0.9}};
  }
  const Json metrics = result::crossover_metrics(crossover_over(rounds).get<result::Crossover>());
  CHECK(metrics["efficiency_length"] == 550);
  CHECK(metrics["efficiency_length_low"] == 500);
  CHECK(metrics["crossover_length"].get<double>() == Approx(104.9).epsilon(1e-3));
  rounds[1].erase("efficiency");
  CHECK_FALSE(crossover_over(rounds).contains("efficiency"));
}

TEST_CASE("a record of the crossover task has the crossover, and no length of its own",
          "[result]") {
  const Json cell = test::crossover_cell("mix", 4, 16, {round_of("found", 100, 110)});
  CHECK(cell["status"] == "ok");
  CHECK(cell["crossover"]["verdict"] == "found");
  CHECK(cell["metrics"].contains("crossover_length"));
  CHECK_FALSE(cell["problem"].contains("length"));
  CHECK_FALSE(cell.contains("timing"));
  Json whole = test::crossover_result({cell});
  CHECK_NOTHROW(result::check_form(whole, "result.json"));
  whole["attnbench"]["cells"][0]["crossover"].erase("length");
  CHECK_THROWS_AS(result::check_form(whole, "result.json"), UsageFailure);
}

TEST_CASE("mechanisms with sizes of different names share the axis", "[result]") {
  Json cells = Json::array();
  for (const int size : {16, 64}) {
    cells.push_back(test::crossover_cell("mix", 4, size, {round_of("found", 100, 110)}));
    Json features = cells.back();
    features["label"] = features["mechanism"] = "performer";
    features["options"] = {{"features", size}};
    cells.push_back(features);
  }
  const Json whole = test::crossover_result(cells);
  const auto panels = test::panels(whole);
  REQUIRE(panels.size() == 1);
  CHECK(panels[0].axis == "size_per_head");
  CHECK(panels[0].series == std::vector<std::string>{"latte", "performer"});
  CHECK(result::axis_values(panels[0]).size() == 2);
}

TEST_CASE("the table shows crossovers with all that they hold for", "[result]") {
  Json failed = test::crossover_cell("mix", 4, 256, {});
  failed["status"] = "timeout";
  failed["reason"] = "no answer in 60 s";
  const Json whole = test::crossover_result(
      {test::crossover_cell("mix", 4, 16, {round_of("found", 100, 110)}),
       test::crossover_cell("mix", 4, 64, {round_of("above", 4096, 0)}), failed});
  const std::string text = result::table(whole, {100, result::Letters::utf8});
  INFO(text);
  CHECK_THAT(text, Catch::Contains("105 (100 to 110)"));
  CHECK_THAT(text, Catch::Contains("above 4096"));
  CHECK_THAT(text, Catch::Contains("timeout"));
  CHECK_THAT(text, Catch::Contains("chunked : softmax/tiled"));
  CHECK_THAT(text, Catch::Contains("B·H=1·4, D=64, causal, forward, scope mix, float32, cpu"));
  const std::string narrow = result::table(whole, {40, result::Letters::ascii});
  for (const char letter : narrow) CHECK(letter > 0);
}
