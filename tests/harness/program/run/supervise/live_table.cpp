#include "harness/program/run/supervise/live_table.hpp"

#include "tests/support/catch.hpp"

using attnbench::Cell;
using attnbench::Status;
using attnbench::result::RoundRecord;
using attnbench::run::any_size;
using attnbench::run::LiveTable;

namespace {

Cell live_cell(const std::string& label, std::int64_t length, const std::string& task = "forward") {
  Cell cell;
  cell.id = task + label + std::to_string(length);
  cell.label = cell.mechanism = label;
  cell.task = "kernel";
  cell.task_label = task;
  cell.settings = {{"length", length}, {"pass", task}};
  cell.varies = {"length"};
  return cell;
}

RoundRecord live_round(const std::string& cell, double seconds) {
  RoundRecord round;
  round.cell = cell;
  round.status = Status::ok;
  round.measured.timing["forward"].median_seconds = seconds;
  return round;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("a live table has the median of each cell's rounds so far", "[progress]") {
  LiveTable table({live_cell("latte", 256), live_cell("latte", 1024), live_cell("softmax", 256),
                   live_cell("softmax", 1024), live_cell("alone", 256, "step")});
  CHECK(table.tasks() == Lines{"forward", "step"});
  CHECK(table.task_of("forwardlatte256") == "forward");
  CHECK(table.task_of("unknown").empty());
  for (const double seconds : {0.001, 0.003, 0.002}) {
    table.add(live_round("forwardlatte256", seconds));
  }
  RoundRecord crashed;
  crashed.cell = "forwardsoftmax1024";
  crashed.status = Status::crashed;
  table.add(crashed);
  table.add(live_round("unknown", 1));
  RoundRecord disturbed = live_round("forwardlatte256", 9);
  disturbed.measured.timing["forward"].disturbed = true;
  table.add(disturbed);
  disturbed.cell = "forwardsoftmax256";
  disturbed.measured.timing["forward"].samples_seconds = {9, 0.5, 20};
  table.add(disturbed);
  CHECK(table.lines("forward", 80, 24) == Lines{"forward  length 256  length 1024",
                                                "latte       2.00 ms            …",
                                                "softmax    (500 ms)      crashed"});
  // What fits nowhere is left out rather than broken.
  CHECK(table.lines("forward", 20, 24).empty());
  CHECK(table.lines("forward", 80, 2).empty());
  CHECK(table.lines("step", 80, any_size).empty());
  CHECK(LiveTable().lines("forward", 80, 24).empty());
}

TEST_CASE("a live table shows what trainings learned, and what else tells cells apart",
          "[progress]") {
  std::vector<Cell> cells;
  for (const double rate : {0.001, 0.003}) {
    Cell cell = live_cell("gla", 64, "recall");
    cell.id = std::to_string(rate);
    cell.settings["learning_rate"] = rate;
    cell.settings["order"] = std::string("shuffled");
    cell.settings["stack"] = std::string();  // which says nothing
    cell.varies = {"order", "stack", "learning_rate"};
    cells.push_back(cell);
  }
  LiveTable table(cells);
  RoundRecord round;
  round.cell = cells[1].id;
  round.status = Status::ok;
  round.measured.training.emplace();
  round.measured.metrics["accuracy"] = 0.98765;
  table.add(round);
  const Lines lines = table.lines("recall", 100, any_size);
  REQUIRE(lines.size() == 2);
  CHECK_THAT(lines[0], Catch::Contains("learning_rate 0.001") && Catch::Contains("0.003"));
  CHECK_THAT(lines[1], Catch::StartsWith("gla, order=shuffled  ") && Catch::EndsWith("0.988"));
}
