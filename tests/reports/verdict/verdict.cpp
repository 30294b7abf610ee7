#include "reports/verdict/verdict.hpp"

#include <stdexcept>

#include "reports/verdict/ranking.hpp"
#include "reports/verdict/sentences.hpp"
#include "tests/reports/verdict/words.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::reports::verdict;
using attnbench::Status;
using attnbench::test::words_of;

namespace {

Time ms(double median, double share = 0.02) {
  return {median / 1e3, median * (1 - share) / 1e3, median * (1 + share) / 1e3};
}

Candidate timed(const std::string& label, double length, Time time, bool exact = false) {
  Candidate cell;
  cell.label = label;
  cell.implementation = (exact ? "softmax/" : label + "/") + std::string("fused");
  cell.exact = exact;
  cell.x = length;
  cell.time = time;
  return cell;
}

PanelQuestion question(std::vector<Candidate> cells) {
  PanelQuestion one;
  one.task = "forward";
  one.what = "forward";
  one.axis = "length";
  one.conditions = "B=1, H=4, D=64, causal, scope mix, float32, cpu";
  one.cells = std::move(cells);
  return one;
}

/// Exact attention takes 1, 4, 16 ms at 256, 512, 1024 tokens; a linear mechanism 2, 4, 8 ms.
PanelQuestion quadratic_and_linear() {
  return question({timed("flash", 256, ms(1), true), timed("flash", 512, ms(4), true),
                   timed("flash", 1024, ms(16), true), timed("linear", 256, ms(2)),
                   timed("linear", 512, ms(4)), timed("linear", 1024, ms(8))});
}

bool says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a verdict names what is fastest, and where the intervals of the times part",
          "[verdict]") {
  PanelQuestion one = quadratic_and_linear();
  const Verdict verdict = judge({"a CPU, 2 threads", {one}});
  REQUIRE(verdict.answers.size() == 1);
  const auto& fastest = verdict.answers[0].fastest;
  REQUIRE(fastest.size() == 3);
  CHECK(fastest[0].labels == std::vector<std::string>{"flash"});
  CHECK(fastest[1].labels == std::vector<std::string>{"flash", "linear"});
  CHECK(fastest[2].labels == std::vector<std::string>{"linear"});
  CHECK(fastest[2].time.median == Approx(0.008));
  REQUIRE(verdict.answers[0].crossings.size() == 1);
  const CrossingStatement& crossover = verdict.answers[0].crossings[0];
  CHECK(crossover.crossing == CrossingKind::found);
  CHECK(crossover.length == Approx(512));
  REQUIRE(crossover.low);
  // The ratio falls as 1/length; bounds of 2 % each way reach 1 at 0.98/1.02 of the length.
  CHECK(*crossover.low == Approx(512 * 0.98 / 1.02));
  CHECK(crossover.high == Approx(512 * 1.02 / 0.98));
  CHECK(crossover.against == "softmax/fused");
  CHECK(text_of(crossover) == "from 510 tokens on (490 to 530)");
  CHECK(verdict.sentence ==
        "On a CPU, 2 threads, B=1, H=4, D=64, causal, scope mix, float32, cpu: " +
            headline_of(verdict) + " (linear/fused; exact attention is softmax/fused).");
  // It is against the fastest exact attention at each length.
  for (const double length : {256.0, 512.0, 1024.0}) {
    one.cells.push_back(timed("naive", length, ms(100), true));
  }
  CHECK(judge({"", {one}}).answers[0].crossings.at(0).length == Approx(512));
}

TEST_CASE("crossovers of lines that do not simply cross", "[verdict]") {
  const std::vector<double> lengths{256, 512, 1024};
  const std::vector<Time> exact{ms(1), ms(4), ms(16)};
  const auto crossing = [&](double a, double b, double c) {
    return cross(lengths, {ms(a), ms(b), ms(c)}, exact);
  };
  CHECK(crossing(0.5, 2, 8).crossing == CrossingKind::below);
  CHECK(crossing(2, 8, 32).crossing == CrossingKind::none);
  CHECK(crossing(0.5, 8, 32).crossing == CrossingKind::reverse);
  CHECK(crossing(0.5, 8, 8).crossing == CrossingKind::several);
  CHECK(crossing(2, 8, 16.1).crossing == CrossingKind::undecided);
  CHECK(crossing(0.5, 4, 8).crossing == CrossingKind::found);  // unclear between, not slower
  const CrossingStatement open = crossing(1, 4, 8);
  CHECK(open.crossing == CrossingKind::found);
  CHECK_FALSE(open.low);
  CHECK(says(text_of(open), "at most"));
}

TEST_CASE("disturbed, wrong and single measurements are not ranked", "[verdict]") {
  PanelQuestion one = quadratic_and_linear();
  for (Candidate& cell : one.cells) {
    if (cell.x == 1024.0 && cell.exact) cell.status = Status::disturbed;
    if (cell.x == 256.0 && !cell.exact) cell.status = Status::wrong;
  }
  const Verdict verdict = judge({"", {one}});
  REQUIRE(verdict.answers[0].fastest.size() == 1);
  CHECK(verdict.answers[0].fastest[0].x == 512.0);
  REQUIRE(verdict.answers[0].crossings.size() == 1);
  CHECK(text_of(verdict.answers[0].crossings[0]) ==
        "cannot tell at 256: linear was wrong; cannot tell at 1024: flash was disturbed");
  REQUIRE(verdict.exceptions.size() == 2);
  const std::string text = words_of(verdict);
  CHECK(says(text, "1 wrong: linear (forward)"));
  CHECK(says(text, "1 disturbed: flash (forward)"));

  for (Candidate& cell : one.cells) cell.status = Status::disturbed;
  CHECK(lines_of(judge({"", {one}}).answers[0]).empty());

  PanelQuestion alone = quadratic_and_linear();
  for (Candidate& cell : alone.cells) cell.over_rounds = false;
  const Verdict single = judge({"", {alone}});
  CHECK(single.answers[0].fastest.empty());
  CHECK(single.sentence.empty());
  CHECK(says(words_of(single), "not ranked: one process timed each"));
}

namespace {

/// The same with a naive form of exact attention, which is five times as slow as flash.
PanelQuestion with_naive() {
  PanelQuestion one = quadratic_and_linear();
  for (const double length : {256.0, 512.0, 1024.0}) {
    one.cells.push_back(timed("naive", length, ms(5 * length * length / 256 / 256), true));
  }
  return one;
}

Candidate& cell_of(PanelQuestion& question, const std::string& label, double length) {
  for (Candidate& cell : question.cells) {
    if (cell.label == label && cell.x == length) return cell;
  }
  throw std::out_of_range(label);
}

}  // namespace

TEST_CASE("nothing is held against the next best where a competitor is missing", "[verdict]") {
  const Status status =
      GENERATE(Status::disturbed, Status::timeout, Status::skipped, Status::crashed, Status::error);
  PanelQuestion one = with_naive();
  cell_of(one, "flash", 512).status = status;
  const Verdict verdict = judge({"", {one}});
  const Answer& answer = verdict.answers[0];
  REQUIRE(answer.fastest.size() == 3);
  CHECK(answer.fastest[1].labels.empty());
  CHECK(answer.fastest[1].missing.below ==
        std::vector<attnbench::reports::Missing>{{"flash", status, false}});
  // Flash at 256 takes 1 ms, linear at 512 takes 4: what is missing may be the faster one.
  REQUIRE(answer.crossings.size() == 1);
  const CrossingStatement& crossover = answer.crossings[0];
  CHECK(crossover.crossing == CrossingKind::found);
  CHECK(crossover.against == "softmax/fused");
  CHECK(crossover.low == 256);
  CHECK(crossover.high == 1024);
  const std::string text = words_of(verdict);
  CHECK(says(text, "flash at 256; cannot tell at 512: flash was"));
  CHECK(says(text, "from somewhere between 256 and 1024 tokens on; cannot tell at 512: flash was"));
}

TEST_CASE("what is missing at the longest length leaves the verdict before it", "[verdict]") {
  PanelQuestion one = with_naive();
  cell_of(one, "flash", 1024).status = Status::disturbed;
  cell_of(one, "linear", 1024).time = ms(17);
  const Verdict verdict = judge({"", {one}});
  CHECK(verdict.answers[0].fastest[2].labels.empty());
  CHECK(verdict.answers[0].crossings.at(0).crossing == CrossingKind::undecided);
  CHECK(says(text_of(verdict.answers[0].crossings[0]), "cannot tell at 1024: flash was disturbed"));
}

TEST_CASE("a bound that follows all the same is used and said", "[verdict]") {
  PanelQuestion one = with_naive();
  // 4 ms at 512 are more than the linear mechanism's 2 at 1024 would be.
  cell_of(one, "linear", 1024).time = ms(2);
  cell_of(one, "flash", 1024).status = Status::disturbed;
  const Answer bounded = judge({"", {one}}).answers[0];
  CHECK(bounded.fastest[2].labels == std::vector<std::string>{"linear"});
  CHECK(says(lines_of(bounded).at(0).text,
             "linear at 1024 (flash was disturbed, but slower at less)"));
  // What ran out of memory is slower than anything, and what is unsupported enters nothing.
  for (const Status status : {Status::out_of_memory, Status::unsupported}) {
    PanelQuestion other = with_naive();
    cell_of(other, "flash", 1024).status = status;
    cell_of(other, "flash", 512).status = status;
    CHECK(judge({"", {other}}).answers[0].fastest[2].labels == std::vector<std::string>{"linear"});
    CHECK(judge({"", {other}}).answers[0].crossings.at(0).gaps.empty());
  }
}

TEST_CASE("the smallest state and workspace are of the longest length", "[verdict]") {
  PanelQuestion one = quadratic_and_linear();
  for (Candidate& cell : one.cells) {
    cell.workspace_bytes = cell.exact ? 4096 * *cell.x : 2048;
    cell.state_bytes = cell.exact ? *cell.x * 1024 : 65536;
    if (cell.x == 1024.0) cell.status = Status::disturbed;  // bytes are not disturbed
  }
  const Verdict verdict = judge({"", {one}});
  const Answer& answer = verdict.answers[0];
  CHECK(answer.bytes_at == 1024.0);
  REQUIRE(answer.states.size() == 2);
  CHECK(answer.states[0].label == "linear");
  CHECK(answer.states[1].bytes == 1024 * 1024);
  CHECK(says(words_of(verdict), "smallest state at length 1024: linear 64.0 KiB; flash 1.00 MiB"));
}

TEST_CASE("accuracies are ranked by seeds, and not by one", "[verdict]") {
  PanelQuestion one;
  one.task = "mqar";
  one.axis = "length";
  one.accuracies = {{"window", 64.0, 0.40, 0.40, 0.40, 1, 2048.0},
                    {"softmax", 64.0, 0.99, 0.99, 0.99, 1, 32768.0}};
  const Verdict single = judge({"", {one}});
  CHECK(single.answers[0].accuracies.front().label == "softmax");
  CHECK(single.answers[0].max_accurate.empty());
  CHECK(says(words_of(single), "takes two seeds"));
  CHECK(says(words_of(single), "softmax 0.990 (32.0 KiB); window 0.400 (2.00 KiB)"));
  CHECK(single.sentence == headline_of(single) + ".");

  for (Accuracy& each : one.accuracies) {
    each.seeds = 3;
    each.low -= 0.01;
  }
  CHECK(judge({"", {one}}).answers[0].max_accurate == std::vector<std::string>{"softmax"});
  one.accuracies[0].high = 0.985;
  CHECK(judge({"", {one}}).answers[0].max_accurate.size() == 2);
  one.untrained = {{"latte", Status::timeout, false}};
  const Verdict lacking = judge({"", {one}});
  CHECK(lacking.answers[0].max_accurate.empty());
  CHECK(says(words_of(lacking), "cannot tell: latte was ended by the time limit"));
}

TEST_CASE("a label that holds a comma is in quotes wherever a sentence names it", "[verdict]") {
  const auto with = [](double length, Time time) { return timed("latte, scan", length, time); };
  PanelQuestion one = quadratic_and_linear();
  for (const double length : {256.0, 512.0, 1024.0}) one.cells.push_back(with(length, ms(2)));
  for (Candidate& cell : one.cells) cell.workspace_bytes = 1024;
  one.cells.push_back(timed("softmax, naive", 512, ms(9), true));
  one.cells.back().status = Status::disturbed;
  const Verdict verdict = judge({"", {one}});
  const std::string text = words_of(verdict);
  CHECK(says(text, "cannot tell at 512: \"softmax, naive\" was disturbed"));
  CHECK(says(text, "\"latte, scan\" at 1024"));
  CHECK(says(text, "\"latte, scan\" (latte, scan/fused) faster than"));
  CHECK(says(text, "\"latte, scan\" 1.00 KiB"));
  CHECK(says(text, "1 disturbed: \"softmax, naive\" (forward)"));
  CHECK(says(verdict.sentence, "\"latte, scan\" has the fastest"));
}

TEST_CASE("mechanisms of which the same is unknown share a line", "[verdict]") {
  PanelQuestion one = quadratic_and_linear();
  for (const double length : {256.0, 512.0, 1024.0}) {
    one.cells.push_back(timed("window", length, ms(3)));
    one.cells.push_back(timed("latte", length, ms(5)));
    one.cells.push_back(timed("naive", length, ms(9), true));
    one.cells.back().status = Status::crashed;
  }
  cell_of(one, "latte", 512).status = Status::disturbed;
  const std::string text = words_of(judge({"", {one}}));
  CHECK(says(text,
             "linear and window faster than exact attention: cannot tell at 256, 512 and "
             "1024: naive was ended by a crash\n"));
  CHECK(says(text,
             "latte faster than exact attention: cannot tell at 256 and 1024: naive was "
             "ended by a crash; cannot tell at 512: latte was disturbed\n"));
}

TEST_CASE("nothing to say makes no verdict", "[verdict]") {
  for (const Verdict& verdict :
       {judge({"a CPU", {}}), judge({"a CPU", {question({timed("flash", 256, ms(1), true)})}})}) {
    CHECK(text_of(verdict, {}).empty());
    CHECK(headline_of(verdict).empty());
  }
}
