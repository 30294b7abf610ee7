// How cells are laid out for people: which setting is the axis, what tells lines apart, what needs
// a panel of its own. Tables and figures share it, so that they show the same thing.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

namespace attnbench::result {

using Json = nlohmann::json;

/// One record at its place. Points into the result that `panels` was given.
struct Placed {
  const Json* cell = nullptr;
  std::string series;       ///< the label, with the options that vary within it
  const Json* x = nullptr;  ///< the axis' value; null where this cell has no such option
};

/// Cells that belong in one picture: same task, same values of every setting but the axis.
struct Panel {
  std::string task;
  std::string task_label;
  std::string axis;  ///< a setting or option; empty where the cells share none
  std::vector<std::pair<std::string, std::string>>
      facet;                        ///< settings that other panels have otherwise
  std::vector<std::string> series;  ///< in the suite's order
  std::vector<Placed> cells;        ///< in the plan's order
  const Json* ceilings = nullptr;   ///< of the result's devices; null where it says none

  /// "pass=forward, scope=mix"; empty without facets.
  std::string facet_text() const;
};

/// Settings over which a training is selected (selection.hpp): cells that differ in these alone
/// stand at one place.
inline constexpr const char* learning_rate = "learning_rate";
inline constexpr const char* model_seed = "model_seed";

/// All panels of a result.json's value, in the plan's order. Every cell is in exactly one.
std::vector<Panel> panels(const Json& result);

/// The one size that mechanisms of linear cost have each under their own name, per head: latents,
/// features, bases or projected length. An axis on which they can be set side by side.
inline constexpr const char* size_per_head = "size_per_head";

/// The bytes of a mechanism's state: of one sequence where a task measured them, else of the whole
/// call. The axis on which mechanisms of different options can be set side by side.
inline constexpr const char* state_bytes = "state_bytes";

/// A cell's setting, option, size of its problem, implementation, device or state by name; null
/// where it has none.
const Json* value_of(const Json& cell, const std::string& key);

/// The distinct axis values of a panel, ascending (numbers first, then words in the plan's order).
std::vector<const Json*> axis_values(const Panel& panel);

}  // namespace attnbench::result
