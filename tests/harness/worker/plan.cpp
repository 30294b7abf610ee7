#include "harness/worker/plan.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/errors.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/variable.hpp"

using namespace attnbench;
using Json = nlohmann::json;

TEST_CASE("option values keep their type on the way in and out", "[cell]") {
  const std::vector<Json> values{3, -1, 2.5, true, "causal", {{"left", 127}, {"right", 0}}};
  for (const Json& value : values) {
    CHECK(to_json(value_from(value, "x")) == value);
  }
  CHECK(std::holds_alternative<std::int64_t>(value_from(3, "x")));
  CHECK(std::holds_alternative<double>(value_from(3.0, "x")));
  CHECK(std::get<Window>(value_from({{"left", 1}, {"right", 2}}, "x")) == Window{1, 2});
}

TEST_CASE("values that are none are refused, naming their place", "[cell]") {
  using Catch::Matchers::Contains;
  const std::vector<Json> wrong{nullptr,
                                Json::array({1}),
                                Json::object(),
                                {{"left", 1}},
                                {{"left", 1.5}, {"right", 0}},
                                {{"left", 1}, {"right", 0}, {"up", 0}},
                                std::numeric_limits<std::uint64_t>::max()};
  for (const Json& value : wrong) {
    INFO(value.dump());
    CHECK_THROWS_WITH(value_from(value, "options.window"), Contains("options.window"));
  }
}

TEST_CASE("a cell gets its task's defaults", "[cell]") {
  Cell planned;
  planned.id = "abc";
  planned.task = "kernel";
  planned.mechanism = "softmax";
  planned.settings = {{"length", std::int64_t{64}}};
  const tasks::ResolvedCell cell = worker::task_cell(planned, tasks::builtin_tasks());
  CHECK(cell.id == "abc");
  CHECK(cell.implementation == "auto");
  CHECK(cell.device == "cpu");
  CHECK(cell.settings.integer("length") == 64);
  CHECK(cell.settings.integer("heads") == 4);
  CHECK(cell.settings.number("input_scale") == 1.0);
}

TEST_CASE("a cell of an unknown task or setting is refused", "[cell]") {
  Cell cell;
  cell.task = "kernle";
  CHECK_THROWS_AS(worker::task_cell(cell, tasks::builtin_tasks()), UsageError);
  cell.task = "kernel";
  cell.settings = {{"lenght", std::int64_t{3}}};
  CHECK_THROWS_AS(worker::task_cell(cell, tasks::builtin_tasks()), UsageError);
}

TEST_CASE("a plan has a forecast of each cell, whatever becomes of the others", "[plan]") {
  const worker::Loaded loaded;
  Cell good;
  good.id = "a";
  good.task = "kernel";
  good.mechanism = "softmax";
  good.settings = {{"length", std::int64_t{64}}};
  Cell senseless = good;
  senseless.id = "b";
  senseless.settings["heads"] = std::int64_t{-3};
  const auto planned = worker::plan(loaded, {good, senseless, good});
  REQUIRE(planned.size() == 3);
  CHECK(planned[0].supported);
  CHECK(planned[0].cost.model_flops > 0);
  REQUIRE(planned[0].problem);
  CHECK(planned[0].problem->length == 64);
  CHECK_FALSE(planned[1].supported);
  CHECK(planned[1].refused);
  CHECK(planned[1].id == "b");
  CHECK(planned[2].implementation == planned[0].implementation);
}

TEST_CASE("a cell without its data is skipped, and says what it would cost", "[plan]") {
  const test::Variable without("ATTNBENCH_DATA", {});
  const worker::Loaded loaded;
  Cell cell;
  cell.id = "a";
  cell.task = "lra.text";
  cell.mechanism = "softmax";
  cell.settings = {{"width", std::int64_t{16}}, {"pattern", std::string("bidirectional")}};
  Cell unsupported = cell;
  unsupported.mechanism = "linformer";
  unsupported.settings["pattern"] = std::string("causal");
  Cell senseless = cell;
  senseless.settings["heads"] = std::int64_t{3};
  Cell unknown = cell;
  unknown.task = "lm";
  unknown.settings = {{"steps", std::int64_t{0}}};
  const auto planned = worker::plan(loaded, {cell, unsupported, senseless, unknown});
  for (const Forecast& forecast : planned) {
    INFO(forecast.reason);
    CHECK_FALSE(forecast.supported);
    CHECK(forecast.status == Status::skipped);
    CHECK_FALSE(forecast.refused);
    CHECK_THAT(forecast.reason, Catch::Contains("attnbench data l"));
    // What keeps a cell from running beside its data leaves no estimate.
    CHECK(forecast.problem.has_value() == (&forecast == &planned[0]));
  }
  CHECK(planned[0].once);
  CHECK(planned[0].cost.model_flops > 0);
  CHECK(planned[0].peak_bytes.value_or(0) > 0);
}
