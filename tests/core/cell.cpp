#include "core/cell.hpp"

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/claims_json.hpp"
#include "core/errors.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using nlohmann::json;

TEST_CASE("a cell comes out of JSON as it went in", "[cell]") {
  json cell = {{"id", "abc"},
               {"label", "latte, scan"},
               {"task", "kernel"},
               {"task_label", "long"},
               {"mechanism", "latte"},
               {"implementation", "scan"},
               {"device", "cuda:1"},
               {"options", {{"latents_per_head", 16}}},
               {"settings", {{"length", 8}, {"input_scale", 1.0}, {"causal", true}}}};
  CHECK(json(cell.get<Cell>()) == cell);
  CHECK_FALSE(cell.get<Cell>().on_cpu());
  // A suite of one cell has an empty list; a cell of no suite has none.
  cell["varies"] = json::array();
  CHECK(json(cell.get<Cell>()) == cell);
  for (const auto& [key, value] : cell.items()) {
    if (key == "varies") continue;
    json lacking = cell;
    lacking.erase(key);
    CHECK_THROWS_WITH(lacking.get<Cell>(), "/" + key + ": expected a value, found nothing");
  }
  cell["lable"] = "x";
  CHECK_THROWS_WITH(cell.get<Cell>(), "/lable: unknown key; did you mean \"label\"?");
}

TEST_CASE("a forecast comes out of JSON as it went in", "[forecast]") {
  Forecast made;
  made.id = "abc";
  made.implementation = "scan";
  made.implementation_reason = "the only one";
  made.cost = Json{{"model_flops", 1e9}}.get<Cost>();
  made.growth = Json{{"time_in_length", 1}, {"from_length", 256}}.get<Growth>();
  made.peak_bytes = 1e6;
  made.options = OptionValues{{"latents_per_head", std::int64_t{16}}};
  made.problem = Problem{};
  const json sent = made;
  CHECK(sent.at("growth").at("from_length").is_number_integer());
  CHECK(sent.at("problem").at("pattern") == "causal");
  CHECK_FALSE(sent.contains("status"));
  CHECK(json(sent.get<Forecast>()) == sent);
  CHECK(sent.get<Forecast>().cost.model_flops == 1e9);
  CHECK(std::isnan(sent.get<Forecast>().cost.exponentials));
  CHECK_FALSE(sent.contains("calls"));
  CHECK_FALSE(sent.get<Forecast>().calls);  // forecasts without the key are read
  made.calls = 16;
  made.calls_cost = Json{{"minimal_bytes", 1e7}}.get<Cost>();
  made.prefill_cost = Json{{"minimal_bytes", 1e6}}.get<Cost>();
  made.unclocked_cost = Json{{"minimal_bytes", 2e6}}.get<Cost>();
  const json several = made;
  CHECK(several.at("calls") == 16);
  CHECK(several.at("prefill_cost").at("minimal_bytes") == 1e6);
  CHECK(several.at("unclocked_cost").at("minimal_bytes") == 2e6);
  CHECK(json(several.get<Forecast>()) == several);

  const json failed = {{"id", "abc"},        {"supported", false}, {"status", "crashed"},
                       {"reason", "signal"}, {"detail", "log"},    {"refused", true}};
  CHECK(json(failed.get<Forecast>()) == failed);
  json odd = failed;
  odd["status"] = "tired";
  CHECK_THROWS_WITH(odd.get<Forecast>(), "/status: expected a status, found \"tired\"");
  odd = sent;
  odd["cost"]["model_flops"] = nullptr;
  CHECK_THROWS_AS(odd.get<Forecast>(), UsageError);
}
