#include "harness/program/run/folder/run_result.hpp"

#include "core/text/format.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::run;
using attnbench::Status;
using attnbench::result::Result;
using attnbench::result::RoundRecord;

namespace {

Planned planned_cell(const std::string& id, std::optional<Settled> settled = {}) {
  attnbench::Cell cell;
  cell.id = cell.label = id;
  cell.task = "kernel";
  cell.mechanism = "softmax";
  return {cell, {}, std::move(settled)};
}

RunFacts facts_of_a_run() {
  RunFacts facts;
  facts.state = "interrupted";
  facts.reason = "Ctrl-C";
  facts.started_at = text::now_text();
  facts.reproduce = "attnbench run x.json";
  facts.rounds = 1;
  facts.suite.name = "x";
  facts.machine.environment = std::map<std::string, std::string>{{"OPENBLAS_CORETYPE", "Haswell"}};
  facts.machine.noise_sources =
      std::vector<std::string>{"OPENBLAS_CORETYPE is set", "another process is busy"};
  return facts;
}

RoundRecord crashed_round(const std::string& waiting = "") {
  RoundRecord round;
  round.status = Status::crashed;
  round.reason = "signal 9";
  round.reused_from = "runs/y";
  round.waiting = waiting;
  return round;
}

}  // namespace

TEST_CASE("every planned cell is in the result, with what became of it", "[run_result]") {
  const std::vector<Planned> planned{planned_cell("a"),
                                     planned_cell("b", Settled{Status::skipped, "too large", ""}),
                                     planned_cell("c")};
  const auto cells = run_result(facts_of_a_run(), planned, {{"a", {crashed_round()}}}, {}).cells;
  REQUIRE(cells.size() == 3);
  CHECK(cells[0].status == Status::crashed);
  CHECK(cells[0].reused_from == "runs/y");
  CHECK(cells[0].reproduce == "attnbench run x.json --only a");
  CHECK(cells[1].status == Status::skipped);
  CHECK(cells[1].reason == "too large");
  CHECK(cells[2].status == Status::skipped);
}

TEST_CASE("variables kept from the worker are no noise, and are listed", "[run_result]") {
  RunFacts facts = facts_of_a_run();
  const auto machine = [&] { return run_result(facts, {}, {}, {}).machine; };
  using Words = std::vector<std::string>;
  CHECK(machine().noise() == Words{"another process is busy"});
  CHECK(machine().kept_from_worker == Words{"OPENBLAS_CORETYPE"});
  facts.blas_core_kept = true;
  CHECK(machine().noise().size() == 2);
  CHECK_FALSE(machine().kept_from_worker);
}

TEST_CASE("card and provenance name the BLAS that the worker had, and who chose it",
          "[run_result]") {
  RunFacts facts = facts_of_a_run();
  facts.machine.blas = attnbench::result::Blas{
      "openblas",
      "/then.so",
      "SkylakeX",
      "attnbench",
      std::map<std::string, double>{{"Prescott", 29e9}, {"SkylakeX", 193e9}},
      {}};
  DeviceProbe probe;
  probe.machine["blas"] = {{"library", "/now.so"}, {"config", "0.3.21"}};
  const Result whole = run_result(facts, {}, {}, {{"cpu", probe}, {"cuda", probe}});
  REQUIRE(whole.machine.blas);
  const auto& blas = *whole.machine.blas;
  CHECK(blas.library == "/now.so");
  CHECK(blas.core_type == "SkylakeX");
  CHECK(blas.chosen_by == "attnbench");
  CHECK(blas.tried->at("Prescott") == 29e9);
  CHECK(Json(whole.provenance).at("blas") == Json(blas));
}

TEST_CASE("a run says how threads waited, and for how long it waited for quiet", "[run_result]") {
  RunFacts facts = facts_of_a_run();
  const auto run_of = [&](const char* a, const char* b) {
    const Result result = run_result(facts, {planned_cell("a"), planned_cell("b")},
                                     {{"a", {crashed_round(a)}}, {"b", {crashed_round(b)}}}, {});
    CHECK(result.cells[0].waiting == a);
    return result.run;
  };
  CHECK(run_of("active", "active").waiting == "active");
  CHECK_FALSE(run_of("active", "active").waited_for_quiet_seconds);
  CHECK(run_of("passive", "active").waiting == "passive");
  CHECK(run_of("active", "passive").waiting == "passive");
  facts.waited_for_quiet_seconds = 3;
  CHECK(*run_of("active", "active").waited_for_quiet_seconds == 3);
}

TEST_CASE("a run has a time where one start measured all of it", "[run_result]") {
  RunFacts facts = facts_of_a_run();
  RoundRecord round = crashed_round();
  round.started_at = facts.started_at;
  const auto seconds = [&] {
    return run_result(facts, {planned_cell("a")}, {{"a", {round}}}, {}).run.wall_seconds;
  };
  CHECK(seconds());
  round.started_at = "2026-01-01T00:00:00Z";
  CHECK_FALSE(seconds());
}
