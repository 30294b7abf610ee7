// How cells are laid out for people: which setting is the axis, what tells lines apart, what needs
// a panel of its own. Tables and figures share it, so that they show the same thing.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result/document.hpp"

namespace attnbench::reports {

/// One record at its place. Points into the result that `panels` was given.
struct Placed {
  const result::CellRecord* cell = nullptr;
  std::string series;     ///< the label, with the options that vary within it
  std::optional<Json> x;  ///< the axis' value; nothing where this cell has no such option
};

/// The axes of the paper's figure that a suite follows, as far as they are known.
struct PaperAxes {
  std::string figure;               ///< "Latte v1, Figure 2"
  std::string source;               ///< what they are known from
  std::optional<bool> logarithmic;  ///< both of them
  std::string time_unit;            ///< "ms"; empty where it is not known
  std::string memory_unit;          ///< likewise, "MiB"
};

/// Cells that belong in one picture: same task, same values of every setting but the axis.
struct Panel {
  std::string task;
  std::string task_label;
  std::string axis;  ///< a setting or option; empty where the cells share none
  std::vector<std::pair<std::string, std::string>>
      facet;                         ///< settings that other panels have otherwise
  std::vector<std::string> series;   ///< in the suite's order
  std::vector<Placed> cells;         ///< in the plan's order
  const Values* ceilings = nullptr;  ///< of the device of the first cell
  std::string command;               ///< that of the run
  bool ranked = true;                ///< by a verdict; not so where cells are of several results
  PaperAxes paper = {};
  std::optional<bool> logarithmic = {};  ///< its axes; where not said, as the values suit

  /// The facet in words: "pass=forward, scope=mix"; empty without facets.
  std::string facet_text() const;
};

/// The cell's stack; empty where all blocks hold the cell's own mechanism.
std::string stack_of(const result::CellRecord& cell);
/// Whether all mixing is exact attention, by any implementation: not so in a stack with others.
bool is_exact(const result::CellRecord& cell);

/// Settings over which a training is selected (selection.hpp): cells that differ in these alone
/// stand at one place.
inline constexpr const char* learning_rate = "learning_rate";
inline constexpr const char* model_seed = "model_seed";
/// The setting that says the mechanisms of a model's blocks: those of one label are told apart by
/// it.
inline constexpr const char* stack = "stack";

/// All panels of a result, in the plan's order. Every cell is in exactly one. They refer to it.
std::vector<Panel> panels(const result::Result& result);
std::vector<Panel> panels(result::Result&& result) = delete;

/// The one size that mechanisms of linear cost have each under their own name, per head: latents,
/// features, bases or projected length. An axis on which they can be set side by side.
inline constexpr const char* size_per_head = "size_per_head";

/// The bytes of a mechanism's state: of one sequence where a task measured them, else of the whole
/// call. The axis on which mechanisms of different options can be set side by side.
inline constexpr const char* state_bytes = "state_bytes";

/// A cell's setting, option, size of its problem, implementation, device or state by name; nothing
/// where it has none.
std::optional<Json> value_of(const result::CellRecord& cell, const std::string& key);

/// ", NAME=VALUE" for a label; empty where the value says nothing: an empty word, or null.
std::string label_part(const std::string& name, const Json& value);

/// The value by name, but as the problem has it where it does, since a setting of 0 may have been
/// derived.
std::optional<Json> size_of(const result::CellRecord& cell, const std::string& key);

/// The distinct axis values of a panel, ascending (numbers first, then words in the plan's order).
std::vector<Json> axis_values(const Panel& panel);

}  // namespace attnbench::reports
