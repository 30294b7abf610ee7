#include "harness/run/folder/run_result.hpp"

#include "core/text/format.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::run;

namespace {

Planned planned_cell(const std::string& id, std::optional<Settled> settled = {}) {
  Cell cell;
  cell.id = cell.label = id;
  cell.task = "kernel";
  cell.mechanism = "softmax";
  return {cell, {}, std::move(settled)};
}

RunFacts facts_of_a_run() {
  RunFacts facts;
  facts.state = "interrupted";
  facts.reason = "Ctrl-C";
  facts.started_at = attnbench::result::now_text();
  facts.reproduce = "attnbench run x.json";
  facts.rounds = 1;
  facts.suite.name = "x";
  facts.machine.environment = std::map<std::string, std::string>{{"OPENBLAS_CORETYPE", "Haswell"}};
  facts.machine.noise_sources =
      std::vector<std::string>{"OPENBLAS_CORETYPE is set", "another process is busy"};
  return facts;
}

attnbench::result::RoundRecord round_from(const Json& json) {
  return json.get<attnbench::result::RoundRecord>();
}

Json cells_of(const Json& result) { return result.at("attnbench").at("cells"); }

}  // namespace

TEST_CASE("every planned cell is in the result, with what became of it", "[run_result]") {
  const std::vector<Planned> planned{
      planned_cell("a"),
      planned_cell("b", Settled{attnbench::result::Status::skipped, "too large", ""}),
      planned_cell("c")};
  const Json round = {{"type", "record"},
                      {"status", "crashed"},
                      {"reason", "signal 9"},
                      {"round", 0},
                      {"reused_from", "runs/y"}};
  const Json cells =
      cells_of(run_result(facts_of_a_run(), planned, {{"a", {round_from(round)}}}, {}));
  REQUIRE(cells.size() == 3);
  CHECK(cells[0]["status"] == "crashed");
  CHECK(cells[0]["reused_from"] == "runs/y");
  CHECK(cells[0]["reproduce"] == "attnbench run x.json --only a");
  CHECK(cells[1]["status"] == "skipped");
  CHECK(cells[1]["reason"] == "too large");
  CHECK(cells[2]["status"] == "skipped");
}

TEST_CASE("variables kept from the worker are no noise, and are listed", "[run_result]") {
  RunFacts facts = facts_of_a_run();
  const auto machine = [&] { return Json(run_result(facts, {}, {}, {}).machine); };
  CHECK(machine()["spoilers"] == Json{"another process is busy"});
  CHECK(machine()["kept_from_worker"] == Json{"OPENBLAS_CORETYPE"});
  facts.blas_core_kept = true;
  CHECK(machine()["spoilers"].size() == 2);
  CHECK_FALSE(machine().contains("kept_from_worker"));
}

TEST_CASE("card and provenance name the BLAS that the worker had, and who chose it",
          "[run_result]") {
  RunFacts facts = facts_of_a_run();
  facts.machine.blas = Json{{"kind", "openblas"},
                            {"library", "/then.so"},
                            {"core_type", "SkylakeX"},
                            {"chosen_by", "attnbench"},
                            {"tried", {{"Prescott", 29e9}, {"SkylakeX", 193e9}}}}
                           .get<attnbench::result::Blas>();
  ProbeAnswer probe;
  probe.machine["blas"] = {{"library", "/now.so"}, {"config", "0.3.21"}};
  const Json whole = run_result(facts, {}, {}, {{"cpu", probe}, {"cuda", probe}});
  const Json& ours = whole.at("attnbench");
  const Json& blas = ours.at("machine").at("blas");
  CHECK(blas.at("library") == "/now.so");
  CHECK(blas.at("core_type") == "SkylakeX");
  CHECK(blas.at("chosen_by") == "attnbench");
  CHECK(blas.at("tried").at("Prescott") == 29e9);
  CHECK(ours.at("provenance").at("blas") == blas);
}

TEST_CASE("a run says how threads waited, and for how long it waited for quiet", "[run_result]") {
  RunFacts facts = facts_of_a_run();
  const auto run_of = [&](const char* a, const char* b) {
    const Json round = {{"type", "record"}, {"status", "crashed"}, {"reason", "x"}, {"round", 0}};
    Json first = round;
    Json second = round;
    first["waiting"] = a;
    second["waiting"] = b;
    const Json result = run_result(facts, {planned_cell("a"), planned_cell("b")},
                                   {{"a", {round_from(first)}}, {"b", {round_from(second)}}}, {});
    CHECK(cells_of(result)[0]["waiting"] == a);
    return result.at("attnbench").at("run");
  };
  CHECK(run_of("active", "active").at("waiting") == "active");
  CHECK_FALSE(run_of("active", "active").contains("waited_for_quiet_seconds"));
  CHECK(run_of("passive", "active").at("waiting") == "passive");
  facts.waited_for_quiet_seconds = 3;
  CHECK(run_of("active", "passive").at("waiting") == "passive");
  CHECK(run_of("active", "active").at("waited_for_quiet_seconds") == 3);
}
