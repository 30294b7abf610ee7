#include "reports/tables/panel_growth.hpp"

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using namespace attnbench::result;

namespace {

struct GrowingCells {
  std::string task = "kernel";
  std::string pass = "forward";
  std::string scope = "mix";
  int past = 0;
  std::string lengths;
  double time_exponent = 1;
  double time_claimed = 1;
  double workspace_exponent = 0;
  double spread = 0.01;    ///< of the interval, on both sides
  double constant = 0;     ///< seconds that do not grow
  double from_length = 0;  ///< of the claim
  bool has_ceilings = false;

  /// A result of one label at five lengths, 20 ms at 1024.
  Result result() const {
    std::vector<CellRecord> cells;
    for (int length = 1024; length <= 16384; length *= 2) {
      const double size = length / 1024.0;
      test::CellBuilder cell("latte", task);
      cell.length(length).set("scope", scope);
      cell.took(constant + 0.02 * std::pow(size, time_exponent), "timed", spread);
      cell.growth = {{"time_in_length", time_claimed}, {"workspace_in_length", 0.0}};
      cell.memory = {{"workspace_bytes", 1e5 * std::pow(size, workspace_exponent)},
                     {"peak_bytes", 1e5 * size}};
      if (!pass.empty()) cell.set("pass", pass);
      cell.set("past", past).set("lengths", lengths);
      if (from_length > 0) cell.growth["from_length"] = from_length;
      cells.push_back(cell);
    }
    Result made = test::result_of(cells);
    if (has_ceilings) {
      made.ceilings["cpu"] = {{"capacity_l1_bytes", 32e3},
                              {"capacity_l2_bytes", 256e3},
                              {"capacity_l3_bytes", 1e6},
                              {"bandwidth_l1_bytes_per_second", 4e11},
                              {"bandwidth_l2_bytes_per_second", 1e11},
                              {"bandwidth_l3_bytes_per_second", 4e10},
                              {"bandwidth_dram_bytes_per_second", 3e10}};
    }
    return made;
  }
};

reports::PanelGrowth grown(const Result& result,
                           reports::GrownQuantity what = reports::GrownQuantity::time) {
  const auto all = reports::panel_growth(test::first_panel(result), what);
  REQUIRE(all.size() == 1);
  return all[0];
}

std::string word_of(const GrowingCells& growth,
                    reports::GrownQuantity what = reports::GrownQuantity::time) {
  return grown(growth.result(), what).word;
}

reports::Grid table_of_growth(const Result& result) {
  return reports::growth_grid(test::first_panel(result));
}

using GridWords = std::vector<std::string>;

}  // namespace

TEST_CASE("a claim stands beside the task and pass that it is of", "[growth]") {
  GrowingCells growth;
  const reports::Grid whole = table_of_growth(growth.result());
  CHECK(whole.columns == GridWords{"time", "claimed", "workspace", "claimed"});
  CHECK(whole.rows.at(0).second == GridWords{"1.00", "1.00: held", "0.00", "0.00: held"});
  SECTION("of a training step the time alone: what is kept for backward is no workspace") {
    growth.pass = "forward+backward";
    growth.workspace_exponent = 0.83;
    const reports::Grid step = table_of_growth(growth.result());
    CHECK(step.columns == GridWords{"time", "claimed", "workspace"});
    CHECK(step.rows.at(0).second == GridWords{"1.00", "1.00: held", "0.83"});
  }
  SECTION("of a backward pass, another scope or another task nothing") {
    for (const auto& [task, pass, scope] : {std::tuple{"kernel", "backward", "mix"},
                                            {"kernel", "forward", "layer"},
                                            {"decode", "", "mix"},
                                            {"crossover", "forward", "mix"},
                                            {"mqar", "", "model"}}) {
      growth.task = task;
      growth.pass = pass;
      growth.scope = scope;
      INFO(task << " " << pass << " " << scope);
      CHECK(table_of_growth(growth.result()).columns == GridWords{"time", "workspace"});
      CHECK(word_of(growth).empty());
    }
  }
}

TEST_CASE("nothing is claimed of tokens after a past, or of a ragged batch", "[growth]") {
  GrowingCells growth;
  CHECK(word_of(growth) == "held");
  growth.past = 64;
  CHECK(word_of(growth).empty());
  growth.past = 0;
  growth.lengths = "2x16+4";
  CHECK(word_of(growth).empty());
}

TEST_CASE("a claim is held, missed, or cannot be told", "[growth]") {
  GrowingCells growth;
  growth.spread = 0.5;
  CHECK(word_of(growth) == "cannot tell");
  growth.spread = 0.01;
  growth.time_exponent = 0.5;
  CHECK(word_of(growth) == "missed");
  growth = {};
  growth.workspace_exponent = 0.83;
  CHECK(word_of(growth, reports::GrownQuantity::workspace) == "missed");
  const reports::Grid grid = table_of_growth(growth.result());
  CHECK(grid.rows.at(0).second.at(3) == "0.00: missed");
  CHECK_THAT(grid.note,
             Catch::Contains("latte (workspace): the exponent is 0.83, claimed is 0.00"));
}

TEST_CASE("a claim beside which nothing could be fitted says why", "[growth]") {
  Result result = GrowingCells().result();
  for (const std::size_t i : {0U, 1U, 2U}) {
    Timing& timing = result.cells[i].timing["timed"];
    timing.median_seconds = timing.low_seconds = timing.high_seconds = 1e-3;
  }
  const reports::Grid grid = table_of_growth(result);
  CHECK(grid.rows.at(0).second.at(0).empty());
  CHECK(grid.rows.at(0).second.at(1) == "1.00: cannot tell");
  CHECK_THAT(grid.note, Catch::Contains("latte (time): fewer than three sizes could be measured; "
                                        "cells under 5 ms, whose fixed costs hide the growth: 3"));
}

TEST_CASE("faster growth is a miss where caches do not explain it", "[growth]") {
  GrowingCells growth;
  growth.time_exponent = 1.3;               // the peak goes from 100 kB to 1.6 MB
  CHECK(word_of(growth) == "cannot tell");  // no ceilings
  growth.has_ceilings = true;
  CHECK(word_of(growth) == "cannot tell");
  CHECK_THAT(grown(growth.result()).fit.reason, Catch::Contains("times slower"));
  growth.time_exponent = 2;
  CHECK(word_of(growth) == "missed");
}

TEST_CASE("smaller growth that still rises is no miss, nor what lies before the claim begins",
          "[growth]") {
  GrowingCells growth;
  growth.time_exponent = growth.time_claimed = 2;
  growth.constant = 0.2;
  CHECK(word_of(growth) == "cannot tell");
  growth.from_length = 4096;
  const auto later = grown(growth.result());
  REQUIRE(later.fit.measured);
  CHECK(later.fit.local.size() == 2);
}

TEST_CASE("no claim is held or missed where the largest size is missing", "[growth]") {
  Result result = GrowingCells().result();
  CHECK(grown(result).word == "held");
  result.cells[2].status = Status::disturbed;
  CHECK(grown(result).word == "held");  // larger ones were measured
  result.cells.back().status = Status::timeout;
  const reports::PanelGrowth cut = grown(result);
  CHECK(cut.word == "cannot tell");
  CHECK_THAT(cut.fit.reason, Catch::Contains("latte was ended by the time limit at 16384"));
  result.cells.back().status = Status::out_of_memory;
  CHECK(grown(result).word == "held");
}

TEST_CASE("disturbed cells enter no growth of time, and their bytes do", "[growth]") {
  Result result = GrowingCells().result();
  for (const std::size_t i : {0U, 1U, 4U}) {
    result.cells[i].status = Status::disturbed;
    result.cells[i].timing["timed"].median_seconds = 8.0;
  }
  const auto timed = grown(result);
  CHECK_FALSE(timed.fit.measured);
  CHECK(timed.word == "cannot tell");
  CHECK_THAT(timed.fit.reason, Catch::Contains("fewer than three sizes"));
  CHECK(grown(result, reports::GrownQuantity::workspace).word == "held");
  result.cells[4] = GrowingCells().result().cells[4];
  CHECK(grown(result).fit.measured.value() == Approx(1));
}
