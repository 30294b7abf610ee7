// Parts of a figure's specification, the same for a single picture and for small multiples.
#pragma once

#include <nlohmann/json.hpp>

namespace attnbench::test {

/// The layered part: of small multiples the one that each facet repeats.
inline const nlohmann::json& unit_of(const nlohmann::json& spec) {
  return spec.contains("spec") ? spec["spec"] : spec;
}

/// Its layers, without the group that a single picture holds them in beside those of failures.
inline const nlohmann::json& layers_of(const nlohmann::json& spec) {
  const nlohmann::json& layers = unit_of(spec)["layer"];
  return layers[0].contains("layer") ? layers[0]["layer"] : layers;
}

/// The rows of the figure's own data, without those that small multiples took from single layers.
inline nlohmann::json own_rows(const nlohmann::json& spec) {
  nlohmann::json rows = nlohmann::json::array();
  for (const nlohmann::json& row : spec["data"]["values"]) {
    if (!row.contains("part")) rows.push_back(row);
  }
  return rows;
}

}  // namespace attnbench::test
