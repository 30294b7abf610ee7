#include "reports/verdict/ranking.hpp"

#include "reports/verdict/input.hpp"
#include "reports/verdict/ranking_table.hpp"
#include "reports/verdict/sentences.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench::reports;
using namespace attnbench::reports::verdict;
using attnbench::Status;
using Catch::Contains;

namespace {

Candidate ranked_cell(const std::string& label, double length, double ms, bool exact = false) {
  Candidate cell;
  cell.label = label;
  cell.implementation = (exact ? "softmax" : label) + std::string("/fused");
  cell.exact = exact;
  cell.x = length;
  cell.time = Time{ms / 1e3, ms * 0.98 / 1e3, ms * 1.02 / 1e3};
  cell.workspace_bytes = 1024 * length;
  return cell;
}

/// Exact attention takes 1 and 16 ms at 256 and 1024 tokens, `label` 2 and 4, slow 3 and 48.
PanelQuestion ranked_question(const std::string& label = "linear") {
  PanelQuestion one;
  one.task = "forward";
  one.what = "forward";
  one.axis = one.place = "length";
  one.conditions = "B=1, H=4, D=64, float32, cpu";
  one.cells = {ranked_cell("slow", 256, 3),        ranked_cell("slow", 1024, 48),
               ranked_cell("flash", 256, 1, true), ranked_cell("flash", 1024, 16, true),
               ranked_cell(label, 256, 2),         ranked_cell(label, 1024, 4)};
  return one;
}

PanelQuestion steps_question() {
  PanelQuestion one = ranked_question();
  one.task = one.what = "step";
  one.place = "a context of length";
  for (Candidate& cell : one.cells) {
    cell.time->median = cell.exact ? 2e-5 : 1e-5;
    cell.time->low = cell.time->median * 0.9;
    cell.time->high = cell.time->median * 1.1;
    cell.state_bytes = cell.exact ? 65536 : 4096;
  }
  return one;
}

std::vector<std::string> column_of(const Grid& grid, const std::string& title) {
  const auto at = std::find(grid.columns.begin(), grid.columns.end(), title);
  std::vector<std::string> texts;
  for (const auto& row : grid.rows) {
    texts.push_back(row.second.at(static_cast<std::size_t>(at - grid.columns.begin())));
  }
  return texts;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a table ranks by time at the longest length, and holds each to exact attention",
          "[verdict]") {
  const Verdict verdict = judge({"a CPU", {ranked_question()}});
  REQUIRE(verdict.rankings.size() == 1);
  const Ranking& ranking = verdict.rankings[0];
  CHECK(ranking.at == 1024.0);
  CHECK(ranking.against == "softmax/fused");
  REQUIRE(ranking.rows.size() == 3);
  CHECK(ranking.rows[0].label == "linear");
  CHECK(ranking.rows[0].fastest);
  CHECK(ranking.rows[0].speedup->median == Approx(4));
  CHECK(ranking.rows[0].speedup->low == Approx(4 * 0.98 / 1.02));
  CHECK(ranking.rows[0].speedup->high == Approx(4 * 1.02 / 0.98));
  CHECK(ranking.rows[1].exact);
  CHECK_FALSE(ranking.rows[1].speedup);
  const Grid grid = grid_of(ranking, attnbench::text::Letters::ascii);
  CHECK(grid.columns == Texts{"time", "x exact", "faster from", "workspace"});
  CHECK(column_of(grid, "x exact") == Texts{"4.0 (3.8 to 4.2)", "exact", "0.33 (0.32 to 0.35)"});
  CHECK(column_of(grid, "faster from") == Texts{"410 (400 to 420)", "", "not up to 1024"});
  CHECK(grid.best.contains({0, 0}));
  CHECK_THAT(grid.note, Contains("forward pass at length 1024, over exact attention (softmax/"));
  CHECK(ranking.headline ==
        "linear has the fastest forward pass at 1024 tokens: 4.0 (3.8 to 4.2) times as fast as "
        "exact attention, and faster from 410 (400 to 420) tokens on");
  CHECK_THAT(text_of(verdict, {}), Contains("linear") && Contains("4.0 (3.8 to 4.2)"));
}

TEST_CASE("steps and qualities of the same labels are columns of the first table", "[verdict]") {
  PanelQuestion trained;
  trained.task = "mqar";
  trained.accuracies = {{"linear", {}, 0.9, 0.88, 0.91, 3, 512.0},
                        {"flash", {}, 0.99, 0.98, 1.0, 3, 2048.0}};
  const Verdict verdict = judge({"", {ranked_question(), steps_question(), trained}});
  REQUIRE(verdict.rankings.size() == 1);
  const Grid grid = grid_of(verdict.rankings[0], attnbench::text::Letters::ascii);
  CHECK(grid.columns ==
        Texts{"time", "x exact", "faster from", "workspace", "step", "accuracy", "state"});
  CHECK(column_of(grid, "step") == Texts{"10 us", "20 us", "10 us"});
  CHECK(column_of(grid, "accuracy") ==
        Texts{"0.900 (0.880 to 0.910)", "0.990 (0.980 to 1.000)", ""});
  CHECK(column_of(grid, "state") == Texts{"4.00 KiB", "64.0 KiB", "4.00 KiB"});
  CHECK(verdict.rankings[0].step_place == "a context of length 1024");
  // Trainings that come first are what the table ranks by.
  const Verdict learned = judge({"", {steps_question(), trained, ranked_question()}});
  REQUIRE(learned.rankings.size() == 1);
  CHECK(headline_of(learned) == "flash has the highest accuracy: 0.990");
  CHECK(learned.rankings[0].rows[0].label == "flash");
  CHECK(grid_of(learned.rankings[0], attnbench::text::Letters::ascii).columns.front() ==
        "accuracy");
  // Labels that the first table lacks have a table of their own.
  trained.accuracies.push_back({"another", {}, 0.5, 0.5, 0.5, 3, 1.0});
  CHECK(judge({"", {steps_question(), trained, ranked_question()}}).rankings.size() == 2);
}

TEST_CASE("a headline says no more than the intervals do", "[verdict]") {
  const auto headline = [](const PanelQuestion& one) { return headline_of(judge({"", {one}})); };
  PanelQuestion one = ranked_question();
  one.cells[5].time = Time{0.020, 0.019, 0.021};
  CHECK(headline(one) == "Nothing is faster than exact attention at 1024 tokens");
  one.cells[5].time = Time{0.016, 0.014, 0.018};
  CHECK(headline(one) == "Nothing can be told to be faster than exact attention at 1024 tokens");
  one = ranked_question();
  one.cells[3].status = Status::disturbed;
  CHECK_THAT(headline(one), Contains("cannot be told what is the fastest at 1024 tokens: flash"));
  CHECK(judge({"", {one}}).rankings[0].rows.back().ended == Status::disturbed);
  one = ranked_question();
  one.cells[1].time = Time{0.004, 0.0039, 0.0041};
  CHECK(
      headline(one) ==
      "slow and linear, which cannot be told apart, have the fastest forward pass at 1024 tokens: "
      "3.8 to 4.2 times as fast as exact attention");
  one = ranked_question("latte, scan");
  CHECK_THAT(headline(one), Catch::StartsWith("\"latte, scan\" has the fastest"));
  for (Candidate& cell : one.cells) cell.exact = false;
  CHECK(headline(one) == "\"latte, scan\" has the fastest forward pass at 1024 tokens");
}

TEST_CASE("trainings are ranked by seeds, and times at sizes of a mechanism's own are not",
          "[verdict]") {
  PanelQuestion one;
  one.task = "mqar";
  one.axis = "state_bytes";
  one.accuracies = {{"latte", 64.0, 0.90, 0.88, 0.91, 3, 512.0},
                    {"gla", 64.0, 0.99, 0.98, 1.0, 3, 2048.0}};
  PanelQuestion timed = ranked_question();
  timed.axis = "state_bytes";
  const Verdict verdict = judge({"", {timed, one}});
  REQUIRE(verdict.rankings.size() == 1);
  CHECK(verdict.rankings[0].timed.empty());
  CHECK(headline_of(verdict) == "gla has the highest accuracy: 0.990");
  one.accuracies[0].high = 0.985;
  CHECK_THAT(headline_of(judge({"", {one}})), Contains("gla and latte") && Contains("overlap"));
  for (Accuracy& each : one.accuracies) each.seeds = 1;
  CHECK(
      headline_of(judge({"", {one}})) ==
      "The accuracies, from 0.990 (gla) to 0.900 (latte), are not ranked: that takes two seeds or "
      "more of each");
  one.untrained = {{"linear", Status::timeout, false}};
  CHECK_THAT(headline_of(judge({"", {one}})),
             Contains("cannot be told what has the highest accuracy"));
}

TEST_CASE("no ratio is over the next best of exact attention", "[verdict]") {
  PanelQuestion one = ranked_question();
  one.cells.push_back(ranked_cell("naive", 1024, 80, true));
  CHECK(judge({"", {one}}).rankings[0].rows[0].speedup->median == Approx(4));
  one.cells[2].time = Time{0.005, 0.0049, 0.0051};  // flash at 256: slower than linear at 1024
  one.cells[3].status = Status::disturbed;          // flash at 1024 may be faster than naive
  const Verdict verdict = judge({"", {one}});
  CHECK(headline_of(verdict) == "linear has the fastest forward pass at 1024 tokens");
  CHECK(verdict.rankings[0].against.empty());
  for (const RankedRow& row : verdict.rankings[0].rows) CHECK_FALSE(row.speedup);
}

TEST_CASE("what is of another pattern is neither ranked nor held to exact attention", "[verdict]") {
  PanelQuestion one = ranked_question();
  for (Candidate& cell : one.cells) cell.kind = cell.label == "linear" ? "both ways" : "causal";
  const Verdict verdict = judge({"", {one}});
  CHECK(headline_of(verdict) == "Nothing is faster than exact attention at 1024 tokens");
  const RankedRow& first = verdict.rankings[0].rows[0];
  CHECK(first.label == "linear");  // its time is shown
  CHECK_FALSE(first.fastest);
  CHECK_FALSE(first.speedup);
  CHECK(verdict.answers[0].crossings.size() == 1);
  CHECK(verdict.answers[0].crossings[0].label == "slow");
}

TEST_CASE("what has no place on the axis is compared at each", "[verdict]") {
  PanelQuestion one = ranked_question();
  one.axis = one.place = "latents_total";
  std::erase_if(one.cells, [](const Candidate& cell) { return cell.exact && cell.x == 256.0; });
  for (Candidate& cell : one.cells) {
    if (cell.exact) cell.x.reset();  // 16 ms, whatever the latents
  }
  const Verdict verdict = judge({"", {one}});
  REQUIRE(verdict.answers[0].fastest.size() == 2);
  CHECK(verdict.answers[0].fastest[0].x == 256.0);
  CHECK(headline_of(verdict) ==
        "linear has the fastest forward pass at 1024 latents: 4.0 (3.8 to 4.2) times as fast as "
        "exact attention");
}

TEST_CASE("of exact attention alone the headline names the fastest", "[verdict]") {
  PanelQuestion one = ranked_question();
  for (Candidate& cell : one.cells) {
    cell.exact = true;
    if (cell.label == "slow") cell.workspace_bytes = 1;
  }
  CHECK(headline_of(judge({"", {one}})) == "linear has the fastest forward pass at 1024 tokens");
}

TEST_CASE("nothing is bold beside a competitor that is missing", "[verdict]") {
  const auto best_of = [](const PanelQuestion& one) {
    return grid_of(judge({"", {one}}).rankings[0], attnbench::text::Letters::ascii).best;
  };
  PanelQuestion one = ranked_question();
  one.cells[1].workspace_bytes = 1;  // slow at 1024
  CHECK(best_of(one).contains({2, 3}));
  one.cells[3].status = Status::crashed;
  one.cells[3].workspace_bytes.reset();
  for (const auto& [row, column] : best_of(one)) CHECK(column != 3);
  PanelQuestion alike = ranked_question();
  for (Candidate& cell : alike.cells) cell.workspace_bytes = 7;
  for (const auto& [row, column] : best_of(alike)) CHECK(column != 3);
}

TEST_CASE("several tables say which task each is of, and steps under which conditions",
          "[verdict]") {
  PanelQuestion recall, listops;
  recall.task = "recall";
  listops.task = "listops";
  for (PanelQuestion* one : {&recall, &listops}) {
    one->accuracies = {{"latte", {}, 0.9, 0.9, 0.9, 1, 512.0}};
  }
  const Verdict verdict = judge({"", {recall, listops}});
  REQUIRE(verdict.rankings.size() == 2);
  CHECK(verdict.rankings[0].headline == "recall: The accuracy: 0.900 (latte)");
  CHECK(verdict.rankings[1].headline == "listops: The accuracy: 0.900 (latte)");
  PanelQuestion steps = steps_question();
  steps.conditions = "B=4, H=4, D=64, float32, cpu";
  const Ranking joined = judge({"", {ranked_question(), steps}}).rankings[0];
  CHECK_THAT(where_text(joined), Contains("steps at a context of length 1024 (B=4); B=1, H=4"));
}
