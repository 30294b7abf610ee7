// Records of the crossover task, for tests of what is made of them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/typed_results.hpp"

namespace attnbench::test {

using Json = nlohmann::json;

/// One round's answer; an end of 0 is open.
inline Json round_of(const std::string& verdict, int low, int high) {
  Json round = {{"verdict", verdict},          {"crossings", Json::array()},
                {"implementation", "chunked"}, {"against", "softmax/tiled"},
                {"length_minimum", 64},        {"length_maximum", 4096},
                {"lengths", Json::array()}};
  if (low > 0) round["low"] = low;
  if (high > 0) round["high"] = high;
  return round;
}

/// The record of a cell of latte (or of a mechanism without a size) over such rounds.
inline Json crossover_cell(const std::string& scope, int heads, int latents,
                           const std::vector<Json>& rounds) {
  std::vector<Json> records;
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    records.push_back({{"round", i}, {"status", "ok"}, {"measured", {{"crossover", rounds[i]}}}});
  }
  Json cell = {{"id", scope + std::to_string(heads) + "x" + std::to_string(latents)},
               {"label", latents > 0 ? "latte" : "linear"},
               {"task", "crossover"},
               {"task_label", "crossover"},
               {"mechanism", latents > 0 ? "latte" : "linear"},
               {"implementation", "auto"},
               {"options", Json::object()},
               {"settings", {{"scope", scope}, {"heads", heads}, {"pass", "forward"}}},
               {"device", "cpu"}};
  if (latents > 0) cell["options"] = {{"latents_per_head", latents}};
  const Json forecast = {{"supported", true},
                         {"implementation", "chunked"},
                         {"problem",
                          {{"batch", 1},
                           {"heads", heads},
                           {"head_dim", 64},
                           {"length", 64},
                           {"key_length", 64},
                           {"pattern", "causal"},
                           {"dtype", "float32"}}}};
  return combined(cell, forecast, records);
}

inline Json crossover_result(std::vector<Json> cells) {
  return {
      {"context", Json::object()},
      {"benchmarks", Json::array()},
      {"attnbench",
       {{"schema", 1},
        {"suite",
         {{"name", "crossover_map"},
          {"tasks",
           {{"crossover",
             {{"task", "crossover"}, {"axis", "size_per_head"}, {"figures", {"crossover"}}}}}}}},
        {"run", Json::object()},
        {"machine", Json::object()},
        {"ceilings", Json::object()},
        {"provenance", Json::object()},
        {"cells", std::move(cells)}}}};
}

}  // namespace attnbench::test
