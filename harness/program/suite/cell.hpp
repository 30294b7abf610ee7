// Cells: one point of a suite's axes each, with sizes, id, description and estimated time.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/cell.hpp"
#include "harness/program/suite/axes.hpp"
#include "harness/program/suite/suite.hpp"
#include "harness/program/suite/suite_entries.hpp"

namespace attnbench::suite {

/// Whether the cell is of a stack of layers: a training, or a call or step of the scope model.
bool has_layers(const Cell& cell);

/// Whether the cell's sequences have lengths of their own, from which its batch and length follow.
bool is_ragged(const Cell& cell);

/// The cell at one point of the axes, without an id. Nothing where sizes do not fit
/// together, which is added to `problems`, at `place` (the entry's) for a size without a place.
std::optional<Cell> make_cell(const TaskEntry& task, const MechanismEntry& entry,
                              const std::map<std::string, const Term*>& point,
                              const std::string& device, const std::string& place,
                              Problems& problems);

/// What a cell's id is made from: task, mechanism, implementation, device, and the settings and
/// options that differ from their defaults. A new option with a default changes no id. A mechanism
/// in Python is its word, run::portable below the suite's `folder`, whatever it is called here.
Json identity(const Cell& cell, const TaskEntry& task, const MechanismEntry& entry,
              const std::filesystem::path& folder);

/// The id of a cell: 12 hexadecimal digits of the identity's hash.
std::string cell_id(const Json& identity);

/// Cells that at least one --only expression matches (where there is one) and no --skip expression.
/// They search describe(cell), mechanism/implementation, device and each "name=value" of the cell.
/// Throws UsageFailure for a bad expression, or where no cell is left.
std::vector<Cell> filtered(std::vector<Cell> cells, const Choices& choices);

/// The machine that estimates assume: about four CPU cores with wide vectors.
struct AssumedMachine {
  double flops_per_second = 1e11;
  double bytes_per_second = 1e10;
};

/// Seconds of one call: the slower of arithmetic and memory traffic. `cost` is a forecast's.
double estimated_call_seconds(const Cost& cost, const AssumedMachine& machine = {});

/// Seconds of a cell in all rounds: process start, warm-up, sampling until the interval is narrow
/// or the limit is reached, and the first round's check and memory pass.
double estimated_cell_seconds(double call_seconds, const nlohmann::json& measure);

}  // namespace attnbench::suite
