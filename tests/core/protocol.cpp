#include "core/protocol.hpp"

#include "core/errors.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
using nlohmann::json;

namespace {

Cell some_cell() {
  Cell cell;
  cell.id = "abc";
  cell.label = "latte, scan";
  cell.task = cell.task_label = "kernel";
  cell.mechanism = "latte";
  cell.implementation = "scan";
  cell.settings = {{"length", std::int64_t{8}}, {"pattern", std::string("causal")}};
  cell.options = {{"window", Window{3, 0}}};
  return cell;
}

protocol::Run some_run() {
  protocol::Run request;
  request.cell = some_cell();
  request.round = 2;
  request.seed = 7;
  request.threads = 4;
  request.limits = {60, 1 << 20, 0};
  request.measure.max_seconds = 1.0;
  request.log = "a.log";
  request.process_rank = ProcessRank{1, 2, "node1", 29500};
  return request;
}

}  // namespace

TEST_CASE("a request comes out as it went in", "[protocol]") {
  const json sent = some_run();
  CHECK(sent.at("type") == "run");
  CHECK(sent.at("limits") == json({{"seconds", 60.0}, {"memory_bytes", 1 << 20}}));
  CHECK(sent.at("process_rank") ==
        json({{"rank", 1}, {"size", 2}, {"address", "node1"}, {"port", 29500}}));
  CHECK(json(json::parse(sent.dump()).get<protocol::Run>()) == sent);

  const json hello = protocol::Hello{1, {"v2=a.so"}, 3, "cuda"};
  CHECK(json(hello.get<protocol::Hello>()) == hello);
  const json plan = protocol::Plan{{some_cell(), some_cell()}};
  CHECK(plan.at("cells").size() == 2);
  CHECK(json(plan.get<protocol::Plan>()) == plan);
  protocol::Probe probe;
  probe.product = true;
  protocol::Generate generate;
  generate.cell = some_cell();
  generate.prompt = "The ";
  generate.temperature = 0.5;
  CHECK(json(json(generate).get<protocol::Generate>()) == json(generate));
  CHECK(json(json(probe).get<protocol::Probe>()) == json(probe));
  protocol::Check check;
  check.mechanism = "flash";
  check.pattern = "causal";
  check.dtypes = {"float32"};
  CHECK_FALSE(json(check).contains("implementation"));
  CHECK(json(json(check).get<protocol::Check>()) == json(check));
}

TEST_CASE("a request that lacks a key or has another names its place", "[protocol]") {
  const auto fault = [](const json& message) {
    CHECK_THROWS_AS(message.get<protocol::Run>(), UsageError);
    try {
      message.get<protocol::Run>();
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  json lacking = some_run();
  lacking["cell"].erase("task");
  CHECK(fault(lacking) == "/cell/task: expected a value, found nothing");
  json odd = some_run();
  odd["cell"]["settings"]["length"] = json::array({1});
  CHECK_THAT(fault(odd), Contains("/cell/settings/length: expected a number"));
  odd = some_run();
  odd["rouns"] = 1;
  CHECK_THAT(fault(odd), Contains("/rouns: unknown key; did you mean \"round\"?"));
  odd = some_run();
  odd["round"] = 1.5;
  CHECK(fault(odd) == "/round: expected a whole number, found 1.5");
  odd = some_run();
  odd["cell"] = 3;
  CHECK(fault(odd) == "/cell: expected an object, found 3");
  odd = some_run();
  odd["limits"]["memory"] = 3;
  CHECK_THAT(fault(odd), Contains("/limits/memory: unknown key"));
  json plan = protocol::Plan{{some_cell(), some_cell()}};
  plan["cells"][1].erase("id");
  CHECK_THROWS_WITH(plan.get<protocol::Plan>(), "/cells/1/id: expected a value, found nothing");
}

TEST_CASE("a sampling rule keeps what is not said", "[protocol]") {
  const auto rule = json({{"max_seconds", 0.5}, {"min_samples", 15}}).get<protocol::SamplingRule>();
  CHECK(rule.max_seconds == 0.5);
  CHECK(rule.min_samples == 15);
  CHECK(rule.max_samples == protocol::SamplingRule().max_samples);
  CHECK(json({{"max_samples", 1e3}}).get<protocol::SamplingRule>().max_samples == 1000);
  CHECK_THROWS_WITH(json({{"max_samples", 1.5}}).get<protocol::SamplingRule>(),
                    "/max_samples: expected a whole number, found 1.5");
  CHECK_THROWS_WITH(json({{"min_sample", 1}}).get<protocol::SamplingRule>(),
                    Contains("did you mean \"min_samples\"?"));
}

TEST_CASE("an answer comes out as it went in", "[protocol]") {
  protocol::CheckAnswer check;
  check.status = Status::wrong;
  check.reason = "causality: it leaks";
  check.properties.resize(1);
  check.properties.front().name = "causality";
  check.properties.front().status = protocol::PropertyStatus::broken;
  const json sent = check;
  CHECK(sent == json::parse(R"({"type": "check", "status": "wrong", "reason": "causality: it leaks",
    "properties": [{"name": "causality", "status": "broken"}]})"));
  CHECK(json(sent.get<protocol::CheckAnswer>()) == sent);
  CHECK(json(sent.get<protocol::Answer>()) == sent);
  CHECK(sent.get<protocol::Answer>().further.size() == 1);
  json odd = sent;
  odd["properties"][0]["status"] = "hold";
  CHECK_THROWS_AS(odd.get<protocol::CheckAnswer>(), UsageError);
  odd = sent;
  odd["status"] = "fine";
  CHECK_THROWS_WITH(odd.get<protocol::CheckAnswer>(), "/status: expected a status, found \"fine\"");

  protocol::ApplyAnswer apply;
  apply.options = {{"window", Window{3, 0}}};
  apply.roles["query"] = {"q.npy", {1, 2, 3, 4}};
  apply.files = {"output.npy"};
  const json applied = apply;
  CHECK(json(applied.get<protocol::ApplyAnswer>()) == applied);
  apply.status = Status::unsupported;
  apply.refused = true;
  CHECK(json(apply) == json({{"type", "apply"}, {"status", "unsupported"}, {"refused", true}}));
}

TEST_CASE("a catalogue comes out as it went in, and names what it lacks", "[catalogue]") {
  const json sent = json::parse(R"({"type": "catalogue", "plugins": [], "tasks": [],
    "stamp": {"attnbench": "1", "abi": 1, "torch": "", "compiler": ""},
    "mechanisms": [{"name": "m", "title": "", "citation": "", "origin": "built in",
      "patterns": ["causal"], "differs_from": [],
      "claims": {"heads_independent": true, "last_row_agrees": false, "linear_in_value": true,
                 "permutation_equivariant": true, "rows_sum_to_one": true},
      "options": [{"name": "k", "type": "integer", "default": 3, "meaning": "", "minimum": 1.0}],
      "implementations": [{"name": "scan", "title": "", "differentiable": true,
                           "growth": {"from_length": 512, "time_in_length": 1.0}}],
      "aliases": [{"name": "a", "implementation": "scan", "options": {"k": 4}, "title": ""}]}]})");
  const auto catalogue = sent.get<Catalogue>();
  CHECK(json(catalogue).dump() == sent.dump());
  CHECK(catalogue.names() == std::vector<std::string>{"m", "a"});
  REQUIRE(catalogue.find("a"));
  CHECK(catalogue.find("a")->mechanism->name == "m");
  CHECK(catalogue.find("a")->implementation() == "scan");
  CHECK(catalogue.find("m")->implementation() == "auto");
  CHECK_FALSE(catalogue.find("b"));
  json odd = sent;
  odd["mechanisms"][0]["options"][0].erase("meaning");
  CHECK_THROWS_WITH(odd.get<Catalogue>(),
                    "/mechanisms/0/options/0/meaning: expected a value, found nothing");
  odd = sent;
  odd["mechanisms"][0]["claims"]["linear_in_value"] = 1;
  CHECK_THROWS_WITH(odd.get<Catalogue>(),
                    "/mechanisms/0/claims/linear_in_value: expected true or false, found 1");
}

TEST_CASE("a plugin may be named with a word for its mechanisms", "[run]") {
  const auto check = [](const char* text, const char* as, const char* path) {
    INFO(text);
    CHECK(PluginName(text).as == as);
    CHECK(PluginName(text).path == path);
  };
  check("build/libmine.so", "", "build/libmine.so");
  check("new=build/libmine.so", "new", "build/libmine.so");
  check("v_2=a=b.so", "v_2", "a=b.so");
  check("a b=c.so", "", "a b=c.so");
  check("New=c.so", "", "New=c.so");
  check("dir/x=c.so", "", "dir/x=c.so");
  check("=c.so", "", "=c.so");
  check("new=", "new", "");
}
