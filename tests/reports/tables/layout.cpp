#include "reports/tables/layout.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace attnbench::result;
using Json = nlohmann::json;

namespace {

Json cell(const std::string& label, Json settings, Json options) {
  return {{"id", label + settings.dump() + options.dump()},
          {"label", label},
          {"task", "kernel"},
          {"task_label", "kernel"},
          {"mechanism", label},
          {"implementation", "composite"},
          {"settings", std::move(settings)},
          {"options", std::move(options)},
          {"status", "skipped"}};
}

Json result_of(std::vector<Json> cells, const std::string& axis = "length") {
  return {{"attnbench",
           {{"suite", {{"tasks", {{"kernel", {{"task", "kernel"}, {"axis", axis}}}}}}},
            {"cells", std::move(cells)}}}};
}

}  // namespace

TEST_CASE("the task's axis is the axis when it varies", "[result]") {
  const Json result = result_of({cell("softmax", {{"length", 512}, {"key_length", 512}}, {}),
                                 cell("softmax", {{"length", 256}, {"key_length", 256}}, {})});
  const auto found = panels(result);
  REQUIRE(found.size() == 1);
  CHECK(found[0].axis == "length");
  CHECK(found[0].facet.empty());  // key_length follows from length
  const auto values = axis_values(found[0]);
  REQUIRE(values.size() == 2);
  CHECK(*values[0] == 256);
}

TEST_CASE("another option becomes the axis when only it varies", "[result]") {
  const Json result = result_of(
      {cell("latte", {{"length", 512}}, {{"latents_total", 64}, {"latents_per_head", 16}}),
       cell("latte", {{"length", 512}}, {{"latents_total", 128}, {"latents_per_head", 32}}),
       cell("softmax", {{"length", 512}}, Json::object())});
  const auto found = panels(result);
  REQUIRE(found.size() == 1);
  CHECK(found[0].axis == "latents_total");
  CHECK(found[0].series == std::vector<std::string>{"latte", "softmax"});
  CHECK(found[0].cells[2].x == nullptr);
}

TEST_CASE("mechanisms of different options stand along the bytes of their states", "[result]") {
  const auto with_state = [](Json one, double bytes) {
    one["status"] = "ok";
    one["cost"] = {{"state_bytes", bytes}};
    return one;
  };
  const auto window = [](int left) { return Json{{"window", {{"left", left}, {"right", 0}}}}; };
  const Json settings = {{"length", 64}};
  std::vector<Json> cells{with_state(cell("softmax", settings, Json::object()), 4096),
                          with_state(cell("window", settings, window(15)), 1024),
                          with_state(cell("window", settings, window(31)), 2048),
                          with_state(cell("latte", settings, {{"latents_total", 16}}), 512),
                          with_state(cell("latte", settings, {{"latents_total", 64}}), 2048)};
  for (const char* declared : {"window", "length", "latents_total"}) {
    const Json result = result_of(cells, declared);
    const auto found = panels(result);
    REQUIRE(found.size() == 1);
    CHECK(found[0].axis == "state_bytes");
    CHECK(found[0].series == std::vector<std::string>{"softmax", "window", "latte"});
    CHECK(axis_values(found[0]).size() == 4);
  }
  // One that shares the axis, or does not vary at all, needs no other.
  cells.erase(cells.begin() + 2);
  const Json result = result_of(cells);
  CHECK(panels(result)[0].axis == "latents_total");
  // A larger batch has a larger state, but is no size of the mechanism.
  std::vector<Json> batches = cells;
  for (Json other : cells) {
    other["settings"]["batch"] = 2;
    other["cost"]["state_bytes"] = 2 * other["cost"]["state_bytes"].get<double>();
    batches.push_back(std::move(other));
  }
  const Json facets = result_of(batches);
  CHECK(panels(facets)[0].axis == "latents_total");
  // Where somebody's state is not known, nobody stands along it.
  cells[0]["cost"].erase("state_bytes");
  cells.push_back(with_state(cell("window", settings, window(31)), 2048));
  CHECK(panels(result_of(cells))[0].axis == "latents_total");
}

TEST_CASE("a learning rate is chosen, not drawn along", "[result]") {
  const Json settings = {{"length", 64}, {"learning_rate", 0.1}};
  Json other = settings;
  other["learning_rate"] = 0.3;
  const auto found =
      panels(result_of({cell("latte", settings, {}), cell("latte", other, {})}, "learning_rate"));
  REQUIRE(found.size() == 1);
  CHECK(found[0].axis.empty());
  CHECK(found[0].series == std::vector<std::string>{"latte"});
  CHECK(found[0].cells[1].x == nullptr);
}

TEST_CASE("further settings make panels, further options make lines", "[result]") {
  std::vector<Json> cells;
  for (const char* pass : {"forward", "backward"}) {
    for (const int latents : {64, 128}) {
      for (const int length : {256, 512}) {
        cells.push_back(cell("latte", {{"length", length}, {"pass", pass}},
                             {{"latents_total", latents}, {"latents_per_head", latents / 4}}));
      }
    }
  }
  const Json result = result_of(cells);
  const auto found = panels(result);
  REQUIRE(found.size() == 2);
  CHECK(found[0].facet_text() == "pass=forward");
  CHECK(found[1].facet_text() == "pass=backward");
  CHECK(found[0].series ==
        std::vector<std::string>{"latte, latents_total=64", "latte, latents_total=128"});
  CHECK(found[0].cells.size() == 4);
}

TEST_CASE("what differs between labels only needs no panel", "[result]") {
  const Json result = result_of({cell("a", {{"length", 256}, {"pattern", "causal"}}, {}),
                                 cell("a", {{"length", 512}, {"pattern", "causal"}}, {}),
                                 cell("b", {{"length", 256}, {"pattern", "bidirectional"}}, {})});
  CHECK(panels(result).size() == 1);
}

TEST_CASE("implementations listed under one label are told apart", "[result]") {
  Json scan = cell("latte", {{"length", 256}}, Json::object());
  Json chunked = scan;
  chunked["implementation"] = "chunked";
  const auto result = result_of({scan, chunked});
  CHECK(panels(result)[0].series == std::vector<std::string>{"latte, implementation=composite",
                                                             "latte, implementation=chunked"});
}
