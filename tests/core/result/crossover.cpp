#include "core/result/crossover.hpp"

#include "core/failure.hpp"
#include "core/result/result_check.hpp"
#include "reports/tables/tables.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using result::Crossover;
using result::crossover_over;
using result::crossover_text;
using result::CrossoverRound;
using test::round_of;

TEST_CASE("a crossover over rounds is their middle, bounded by their ends", "[result]") {
  const Crossover joined = crossover_over(
      {round_of("found", 300, 320), round_of("found", 280, 290), round_of("found", 400, 420)});
  CHECK(joined.verdict == "found");
  CHECK(*joined.length == Approx(309.8).epsilon(1e-3));
  CHECK(joined.low == 280);
  CHECK(joined.high == 420);
  CHECK(joined.interval == "range");
  CHECK(crossover_text(joined) == "310 (280 to 420)");
  CHECK(joined.rounds.size() == 3);
  CHECK(joined.against == "softmax/tiled");
  CHECK_FALSE(joined.disturbed);
  // One round has its search's interval, six an order-statistic one.
  const Crossover one = crossover_over({round_of("found", 300, 320)});
  CHECK(one.interval == "search");
  CHECK(one.low == 300);
  std::vector<CrossoverRound> rounds{round_of("below", 0, 64)};
  for (int i = 1; i < 12; ++i) rounds.push_back(round_of("found", 100 + i, 200 + i));
  const Crossover twelve = crossover_over(rounds);
  CHECK(twelve.interval == "order");
  CHECK(twelve.low == 102);  // ranks 3 and 10 of 12
  CHECK(twelve.high == 209);
}

TEST_CASE("rounds beyond what was searched leave an end open, not out", "[result]") {
  const CrossoverRound below = round_of("below", 0, 64), above = round_of("above", 4096, 0),
                       none = round_of("none", 4096, 0), found = round_of("found", 80, 85);
  const auto text = [](const std::vector<CrossoverRound>& rounds) {
    return crossover_text(crossover_over(rounds));
  };
  CHECK(text({below, round_of("found", 70, 75), found}) == "72 (up to 85)");
  CHECK(text({below, below, found}) == "below 85");
  CHECK(text({above, none, above}) == "above 4096");
  CHECK(text({none, none, above}) == "none: slower up to 4096");
  // With an even count no length is claimed that half did not find.
  CHECK(crossover_over({found, above}).verdict == "above");
  CHECK(crossover_over({found, below}).verdict == "below");
  CHECK(crossover_over({above, below}).verdict == "undecided");
  CHECK_FALSE(crossover_over({below, below, found}).length);
}

TEST_CASE("disturbed rounds vote for nothing", "[result]") {
  const CrossoverRound quiet = round_of("found", 300, 320);
  CrossoverRound far = round_of("found", 4000, 4090);
  far.disturbed = true;
  const Crossover joined = crossover_over({far, far, quiet});
  CHECK(joined.verdict == "found");
  CHECK(joined.low == 300);
  CHECK(joined.high == 320);
  CHECK(joined.verdicts == std::map<std::string, std::int64_t>{{"found", 1}});
  CHECK(joined.disturbed == 2);
  CHECK(joined.rounds.size() == 3);
  const Crossover none = crossover_over({far, far, far});
  CHECK(none.verdict == "undecided");
  CHECK_FALSE(none.length);
  CHECK(crossover_text(none) == "undecided, 3 of 3 rounds disturbed");
  CHECK(none.length_maximum == 4096);
  // Nor does a search whose comparisons were mostly disturbed.
  CrossoverRound mostly = round_of("above", 4096, 0);
  const auto compare = [&](std::int64_t length, const char* stop) {
    result::ComparedLength& one = mostly.lengths->emplace_back();
    one.length = length;
    one.stop = stop;
  };
  for (const char* stop : {"disturbed", "disturbed", "decided"}) compare(64, stop);
  compare(8192, "");  // untried
  CHECK(crossover_over({mostly, quiet}).verdict == "found");
  compare(128, "decided");
  CHECK(crossover_over({mostly, quiet}).verdict == "above");
}

TEST_CASE("several crossings, and rounds that do not agree, are said as they are", "[result]") {
  CrossoverRound twice = round_of("several", 0, 0);
  twice.crossings =
      std::vector<result::Crossing>{{90, 100, "mechanism", {}}, {700, 720, "exact", {}}};
  const Crossover several = crossover_over({twice, twice, round_of("found", 90, 100)});
  CHECK(several.verdict == "several");
  CHECK(crossover_text(several) == "several: 95, 710");
  CHECK(crossover_over({twice, round_of("undecided", 0, 0), round_of("reverse", 5, 6)}).verdict ==
        "undecided");
  const Crossover one_odd =
      crossover_over({twice, round_of("found", 90, 100), round_of("found", 92, 99)});
  CHECK(one_odd.verdict == "found");
  CHECK(one_odd.verdicts.at("several") == 1);
}

TEST_CASE("the efficiency length is the median of the fits", "[result]") {
  std::vector<CrossoverRound> rounds(3, round_of("found", 100, 110));
  for (std::size_t i = 0; i < 2; ++i) {
    rounds[i].efficiency = result::Efficiency{500.0 + 100 * double(i), {}, {}, 0.99, 0.9};
  }
  Values metrics = result::crossover_metrics(crossover_over(rounds));
  CHECK(metrics["efficiency_length"] == 550);
  CHECK(metrics["efficiency_length_low"] == 500);
  CHECK(metrics["crossover_length"].get<double>() == Approx(104.9).epsilon(1e-3));
  rounds[1].efficiency.reset();
  CHECK_FALSE(crossover_over(rounds).efficiency);
}

TEST_CASE("a record of the crossover task is of its form, and lacks no length", "[result]") {
  Json whole =
      test::crossover_result({test::crossover_cell("mix", 4, 16, {round_of("found", 100, 110)})});
  CHECK_NOTHROW(result::check_form(whole, "result.json"));
  whole["attnbench"]["cells"][0]["crossover"].erase("length");
  CHECK_THROWS_AS(result::check_form(whole, "result.json"), UsageFailure);
}

TEST_CASE("mechanisms with sizes of different names share the axis", "[result]") {
  std::vector<result::CellRecord> cells;
  for (const int size : {16, 64}) {
    cells.push_back(test::crossover_cell("mix", 4, size, {round_of("found", 100, 110)}));
    result::CellRecord features = cells.back();
    features.label = features.mechanism = "performer";
    features.options = {{"features", size}};
    cells.push_back(features);
  }
  const auto panels = test::panels(test::crossover_result(cells));
  REQUIRE(panels.size() == 1);
  CHECK(panels[0].axis == "size_per_head");
  CHECK(panels[0].series == std::vector<std::string>{"latte", "performer"});
  CHECK(reports::axis_values(panels[0]).size() == 2);
}

TEST_CASE("the table shows crossovers with all that they hold for", "[result]") {
  const result::Result whole = test::crossover_result(
      {test::crossover_cell("mix", 4, 16, {round_of("found", 100, 110)}),
       test::crossover_cell("mix", 4, 64, {round_of("above", 4096, 0)}),
       test::crossover_cell("mix", 4, 256, {}).ended(Status::timeout, "no answer in 60 s")});
  const std::string text = reports::table(whole, {100, text::Letters::utf8});
  INFO(text);
  for (const char* part : {"105 (100 to 110)", "above 4096", "timeout", "chunked : softmax/tiled",
                           "B·H=1·4, D=64, causal, forward, scope mix, float32, cpu"}) {
    CHECK_THAT(text, Catch::Contains(part));
  }
  const std::string narrow = reports::table(whole, {40, text::Letters::ascii});
  for (const char letter : narrow) CHECK(letter > 0);
}
