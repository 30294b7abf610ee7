// Planning: which cells run, and what is said of those that do not.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/failure.hpp"

namespace attnbench::run {

using Json = nlohmann::json;

/// Cells that make no sense. It names them; who knows the file that asks for them adds its name.
class CellsRefused : public UsageFailure {
 public:
  using UsageFailure::UsageFailure;
};

/// A cell with what is known of it before anything runs.
struct Planned {
  Json cell;
  Json forecast;
  /// {status, reason} where it will not run: not supported, too large, its forecast failed.
  Json settled;
  bool runs() const { return settled.is_null(); }
  /// Of a run with `all` rounds: a training is done once.
  int rounds(int all) const;
  std::string id() const { return cell.at("id"); }
};

/// `forecasts` are the worker's, in the cells' order; `memory_limit` tells the bytes that a cell
/// may take. Throws CellsRefused where a forecast says that the cell makes no sense: nothing runs
/// then.
std::vector<Planned> plan_cells(const std::vector<Json>& cells, const std::vector<Json>& forecasts,
                                const std::function<std::int64_t(const Json& cell)>& memory_limit);

}  // namespace attnbench::run
