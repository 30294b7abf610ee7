#include "reports/page/check.hpp"

#include "core/protocol.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using Catch::Contains;
using Json = nlohmann::json;

TEST_CASE("the report of a check tells what failed, what was left out, and why", "[reports]") {
  const Json document = Json::parse(R"({
    "verdict": "failed", "command": "attnbench check my_mix",
    "stamp": {"attnbench": "0.1.0", "torch": "1.13"},
    "machine": {"host": "node_7", "cpu_model": "a processor", "os": "a system", "devices": {
      "cuda:1": {"name": "a card", "compute_capability": "9.0", "driver": "580.1"}}},
    "mechanisms": [{"name": "my_mix", "title": "Mine", "claims": {"linear_in_value": true}}],
    "checks": [
      {"mechanism": "my_mix", "implementation": "scan", "pattern": "causal", "dtype": "float32",
       "status": "wrong", "properties": [
         {"name": "causality", "status": "broken", "error": 0.5, "tolerance": 0.001,
          "reason": "row 3 moved by 0.5"},
         {"name": "padding", "status": "held", "error": 1e-6, "tolerance": 1e-5}]},
      {"mechanism": "my_mix", "implementation": "scan", "pattern": "causal", "dtype": "float32",
       "status": "ok", "properties": [
         {"name": "cross", "status": "not_applicable", "reason": "it looks | back only"}]},
      {"mechanism": "my_mix", "implementation": "scan", "pattern": "causal", "dtype": "float32",
       "status": "crashed", "reason": "the process was killed by signal 11", "properties": []}],
    "growth": [
      {"mechanism": "my_mix", "implementation": "scan", "quantity": "time in length", "claimed": 1,
       "tolerance": 0.2, "verdict": "differs", "measured": 1.9},
      {"mechanism": "my_mix", "implementation": "scan", "quantity": "workspace in length",
       "claimed": 1, "tolerance": 0.2, "verdict": "undecided"}]})");
  const std::string page = reports::check_markdown(document);
  CHECK_THAT(page, Catch::StartsWith("# attnbench check: failed\n"));
  for (const char* part :
       {"- my\\_mix/scan causal float32: **causality** row 3 moved by 0.5",
        "| wrong | 1 | 1 | 0 | causality 0.5 of 0.001 |", "| it looks \\| back only | cross |",
        "crashed, the process was killed by signal 11",
        "| time in length | 1 | 0.2 | 1.9 | differs |",
        "| workspace in length | 1 | 0.2 | not measured | undecided |",
        "- claims: linear\\_in\\_value",
        "- processor: a processor\n- machine: node\\_7\n- system: a system\n",
        "- device: a card (cuda:1), compute capability 9.0, driver 580.1\n"}) {
    CHECK_THAT(page, Contains(part));
  }
  CHECK_THAT(reports::check_markdown(Json::object()),
             !Contains("processor") && !Contains("- device"));
  CHECK(document["checks"][2].get<protocol::CheckedRow>().closest_to_tolerance() == nullptr);
}
