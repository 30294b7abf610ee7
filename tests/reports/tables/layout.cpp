#include "reports/tables/layout.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench::result;
using Json = nlohmann::json;

namespace {

Json layout_cell(const std::string& label, Json settings, Json options) {
  return {{"id", label + settings.dump() + options.dump()},
          {"label", label},
          {"task", "kernel"},
          {"task_label", "kernel"},
          {"mechanism", label},
          {"implementation", "composite"},
          {"settings", std::move(settings)},
          {"options", options.is_null() ? Json::object() : std::move(options)},
          {"status", "skipped"}};
}

Json layout_result(std::vector<Json> cells, const std::string& axis = "length") {
  return {{"attnbench",
           {{"suite", {{"tasks", {{"kernel", {{"task", "kernel"}, {"axis", axis}}}}}}},
            {"cells", std::move(cells)}}}};
}

}  // namespace

TEST_CASE("the task's axis is the axis when it varies", "[result]") {
  const Json result =
      layout_result({layout_cell("softmax", {{"length", 512}, {"key_length", 512}}, {}),
                     layout_cell("softmax", {{"length", 256}, {"key_length", 256}}, {})});
  const auto found = attnbench::test::panels(result);
  REQUIRE(found.size() == 1);
  CHECK(found[0].axis == "length");
  CHECK(found[0].facet.empty());  // key_length follows from length
  const auto values = axis_values(found[0]);
  REQUIRE(values.size() == 2);
  CHECK(values[0] == 256);
}

TEST_CASE("another option becomes the axis when only it varies", "[result]") {
  const Json result = layout_result(
      {layout_cell("latte", {{"length", 512}}, {{"latents_total", 64}, {"latents_per_head", 16}}),
       layout_cell("latte", {{"length", 512}}, {{"latents_total", 128}, {"latents_per_head", 32}}),
       layout_cell("softmax", {{"length", 512}}, Json::object())});
  const auto found = attnbench::test::panels(result);
  REQUIRE(found.size() == 1);
  CHECK(found[0].axis == "latents_total");
  CHECK(found[0].series == std::vector<std::string>{"latte", "softmax"});
  CHECK_FALSE(found[0].cells[2].x);
}

TEST_CASE("mechanisms of different options stand along the bytes of their states", "[result]") {
  const auto with_state = [](Json one, double bytes) {
    one["status"] = "ok";
    one["cost"] = {{"state_bytes", bytes}};
    return one;
  };
  const auto window = [](int left) { return Json{{"window", {{"left", left}, {"right", 0}}}}; };
  const Json settings = {{"length", 64}};
  std::vector<Json> cells{
      with_state(layout_cell("softmax", settings, Json::object()), 4096),
      with_state(layout_cell("window", settings, window(15)), 1024),
      with_state(layout_cell("window", settings, window(31)), 2048),
      with_state(layout_cell("latte", settings, {{"latents_total", 16}}), 512),
      with_state(layout_cell("latte", settings, {{"latents_total", 64}}), 2048)};
  for (const char* declared : {"window", "length", "latents_total"}) {
    const Json result = layout_result(cells, declared);
    const auto found = attnbench::test::panels(result);
    REQUIRE(found.size() == 1);
    CHECK(found[0].axis == "state_bytes");
    CHECK(found[0].series == std::vector<std::string>{"softmax", "window", "latte"});
    CHECK(axis_values(found[0]).size() == 4);
  }
  // One that shares the axis, or does not vary at all, needs no other.
  cells.erase(cells.begin() + 2);
  const Json result = layout_result(cells);
  CHECK(attnbench::test::panels(result)[0].axis == "latents_total");
  // A larger batch has a larger state, but is no size of the mechanism.
  std::vector<Json> batches = cells;
  for (Json other : cells) {
    other["settings"]["batch"] = 2;
    other["cost"]["state_bytes"] = 2 * other["cost"]["state_bytes"].get<double>();
    batches.push_back(std::move(other));
  }
  const Json facets = layout_result(batches);
  CHECK(attnbench::test::panels(facets)[0].axis == "latents_total");
  // Where somebody's state is not known, nobody stands along it.
  cells[0]["cost"].erase("state_bytes");
  cells.push_back(with_state(layout_cell("window", settings, window(31)), 2048));
  CHECK(attnbench::test::panels(layout_result(cells))[0].axis == "latents_total");
}

TEST_CASE("a learning rate is chosen, not drawn along", "[result]") {
  const Json settings = {{"length", 64}, {"learning_rate", 0.1}};
  Json other = settings;
  other["learning_rate"] = 0.3;
  const auto found = attnbench::test::panels(layout_result(
      {layout_cell("latte", settings, {}), layout_cell("latte", other, {})}, "learning_rate"));
  REQUIRE(found.size() == 1);
  CHECK(found[0].axis.empty());
  CHECK(found[0].series == std::vector<std::string>{"latte"});
  CHECK_FALSE(found[0].cells[1].x);
}

TEST_CASE("further settings make panels, further options make lines", "[result]") {
  std::vector<Json> cells;
  for (const char* pass : {"forward", "backward"}) {
    for (const int latents : {64, 128}) {
      for (const int length : {256, 512}) {
        cells.push_back(
            layout_cell("latte", {{"length", length}, {"pass", pass}},
                        {{"latents_total", latents}, {"latents_per_head", latents / 4}}));
      }
    }
  }
  const Json result = layout_result(cells);
  const auto found = attnbench::test::panels(result);
  REQUIRE(found.size() == 2);
  CHECK(found[0].facet_text() == "pass=forward");
  CHECK(found[1].facet_text() == "pass=backward");
  CHECK(found[0].series ==
        std::vector<std::string>{"latte, latents_total=64", "latte, latents_total=128"});
  CHECK(found[0].cells.size() == 4);
}

TEST_CASE("settings that differ between labels only make no panel", "[result]") {
  const Json result =
      layout_result({layout_cell("a", {{"length", 256}, {"pattern", "causal"}}, {}),
                     layout_cell("a", {{"length", 512}, {"pattern", "causal"}}, {}),
                     layout_cell("b", {{"length", 256}, {"pattern", "bidirectional"}}, {})});
  CHECK(attnbench::test::panels(result).size() == 1);
}

TEST_CASE("implementations listed under one label are told apart", "[result]") {
  Json scan = layout_cell("latte", {{"length", 256}}, Json::object());
  Json chunked = scan;
  chunked["implementation"] = "chunked";
  const auto result = layout_result({scan, chunked});
  CHECK(
      attnbench::test::panels(result)[0].series ==
      std::vector<std::string>{"latte, implementation=composite", "latte, implementation=chunked"});
}
