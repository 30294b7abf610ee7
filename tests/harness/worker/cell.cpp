#include "harness/worker/cell.hpp"

#include <limits>

#include "core/errors.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using worker::Json;

TEST_CASE("option values keep their type on the way in and out", "[cell]") {
  const std::vector<Json> values{3, -1, 2.5, true, "causal", {{"left", 127}, {"right", 0}}};
  for (const Json& value : values) {
    CHECK(worker::to_json(worker::value_from(value, "x")) == value);
  }
  CHECK(std::holds_alternative<std::int64_t>(worker::value_from(3, "x")));
  CHECK(std::holds_alternative<double>(worker::value_from(3.0, "x")));
  CHECK(std::get<Window>(worker::value_from({{"left", 1}, {"right", 2}}, "x")) == Window{1, 2});
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
    CHECK_THROWS_WITH(worker::value_from(value, "options.window"), Contains("options.window"));
  }
}

TEST_CASE("a cell gets its task's defaults", "[cell]") {
  const Json said = {{"id", "abc"},
                     {"task", "kernel"},
                     {"mechanism", "softmax"},
                     {"settings", {{"length", 64}}},
                     {"options", Json::object()}};
  const tasks::Cell cell = worker::cell_from(said, tasks::builtin_tasks());
  CHECK(cell.id == "abc");
  CHECK(cell.implementation == "auto");
  CHECK(cell.device == "cpu");
  CHECK(cell.settings.integer("length") == 64);
  CHECK(cell.settings.integer("heads") == 4);
  CHECK(cell.settings.number("input_scale") == 1.0);
}

TEST_CASE("a cell that lacks something or has too much is refused", "[cell]") {
  Json cell = {{"id", "abc"}, {"task", "kernel"}, {"mechanism", "softmax"}};
  for (const char* key : {"id", "task", "mechanism"}) {
    Json lacking = cell;
    lacking.erase(key);
    CHECK_THROWS_AS(worker::cell_from(lacking, tasks::builtin_tasks()), UsageError);
  }
  cell["settings"] = {{"lenght", 3}};
  CHECK_THROWS_AS(worker::cell_from(cell, tasks::builtin_tasks()), UsageError);
  CHECK_THROWS_AS(worker::cell_from(Json::array(), tasks::builtin_tasks()), UsageError);
}

TEST_CASE("costs that are not finite are left out", "[cell]") {
  Cost cost;
  cost.model_flops = 12;
  cost.saved_bytes = std::numeric_limits<double>::infinity();
  cost.exponentials = std::numeric_limits<double>::quiet_NaN();
  const Json written = worker::to_json(cost);
  CHECK(written.at("model_flops") == 12);
  CHECK_FALSE(written.contains("saved_bytes"));
  CHECK_FALSE(written.contains("exponentials"));
}
