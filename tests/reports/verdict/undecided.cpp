#include "reports/verdict/undecided.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/catch.hpp"

using namespace attnbench::reports::verdict;
using attnbench::Status;

namespace {

using Ids = std::vector<std::string>;

/// A cell whose id is its label and length; its interval is `share` on both sides of `seconds`.
Candidate cell_of(const std::string& label, double length, double seconds, double share = 0.05) {
  Candidate cell;
  cell.id = label + " " + std::to_string(static_cast<int>(length));
  cell.label = label;
  cell.implementation = label + "/fused";
  cell.exact = label == "flash" || label == "naive";
  cell.x = length;
  cell.time = Time{seconds, seconds * (1 - share), seconds * (1 + share)};
  return cell;
}

PanelQuestion asked(std::vector<Candidate> cells, const std::string& task = "forward") {
  PanelQuestion one;
  one.task = task;
  one.what = "forward";
  one.axis = one.place = "length";
  one.cells = std::move(cells);
  return one;
}

std::vector<Undecided> open_of(const std::vector<PanelQuestion>& questions) {
  const VerdictInput input{"a CPU", questions};
  return undecided_of(input, judge(input));
}

}  // namespace

TEST_CASE("what is undecided names its cells, and only those", "[verdict]") {
  const auto open = open_of({asked(
      {cell_of("flash", 256, 1), cell_of("linear", 256, 2), cell_of("latte", 256, 2.02),
       cell_of("flash", 512, 4), cell_of("linear", 512, 4.1), cell_of("latte", 512, 8),
       cell_of("flash", 1024, 16), cell_of("linear", 1024, 8), cell_of("latte", 1024, 16.5)})});
  // That linear and latte are alike at 256 is no statement of the verdict: both are slower.
  REQUIRE(open.size() == 2);
  CHECK(open[0].words == "which of flash and linear is fastest at length 512");
  CHECK(open[0].cells == Ids{"flash 512", "linear 512"});
  CHECK(open[1].words == "whether latte is faster than exact attention at length 1024");
  CHECK(open[1].cells == Ids{"latte 1024", "flash 1024"});
}

TEST_CASE("each exact attention that may be the fastest is a side", "[verdict]") {
  const auto open = open_of({asked({cell_of("flash", 512, 4), cell_of("naive", 512, 4.05),
                                    cell_of("linear", 512, 1), cell_of("latte", 512, 3.9)})});
  REQUIRE(open.size() == 1);
  CHECK(open[0].cells == Ids{"latte 512", "flash 512", "naive 512"});
}

TEST_CASE("times that are known to be equal are decided", "[verdict]") {
  CHECK(open_of({asked({cell_of("flash", 512, 4, 0.005), cell_of("linear", 512, 4, 0.005)})})
            .empty());
  CHECK(
      open_of({asked({cell_of("flash", 512, 4, 0.02), cell_of("linear", 512, 4, 0.02)})}).size() ==
      1);
}

TEST_CASE("a disturbed cell is undecided, whatever else is", "[verdict]") {
  std::vector<Candidate> cells{cell_of("flash", 512, 4), cell_of("linear", 512, 1),
                               cell_of("latte", 512, 8)};
  cells[2].status = Status::disturbed;
  const auto open = open_of({asked(cells), asked({cell_of("flash", 512, 4)}, "backward")});
  REQUIRE(open.size() == 1);
  CHECK(open[0].words == "forward: latte was disturbed at length 512");
  CHECK(open[0].cells == Ids{"latte 512"});
}
