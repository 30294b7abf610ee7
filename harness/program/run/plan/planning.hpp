// Planning: what the worker knows (the catalogue, forecasts of cells), and which cells run.
//
// Catalogue and forecasts are cached, so that `list`, `validate` and `plan` answer without loading
// LibTorch. The key is the content of the worker, its libraries and the plugins.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/catalogue.hpp"
#include "core/cell.hpp"
#include "core/failure.hpp"
#include "core/process/fingerprint.hpp"

namespace attnbench::run {

using Json = nlohmann::json;

/// Loads the catalogue from the cache, or from a worker started for it. Throws EnvironmentFailure
/// if there is none.
Catalogue load_catalogue(const process::Build& build);

/// The worker's forecast of each cell, in order, cached like the catalogue. Throws
/// EnvironmentFailure where the worker does not answer as it should.
std::vector<Forecast> forecast(const std::vector<Cell>& cells, const process::Build& build);
/// Whether none of the forecasts failed. Only such a list is cached: the failed one may succeed the
/// next time.
bool is_whole(const std::vector<Forecast>& forecasts);

/// Thrown for cells that make no sense. The message names them; the caller adds the suite file's
/// name.
class CellsRefused : public UsageFailure {
 public:
  using UsageFailure::UsageFailure;
};

/// The cells of a list, as a journal's header has them. Throws CellsRefused.
std::vector<Cell> cells_from(const Json& cells);

/// Why a cell will not run.
struct Settled {
  Status status = Status::skipped;
  std::string reason;
  std::string detail;
};
/// Writes it as {status, reason, detail?}.
Json to_json(const Settled& settled);

/// A cell and its forecast.
struct Planned {
  Cell cell;
  Forecast forecast;
  /// The reason why it will not run: not supported, too large, or its forecast failed.
  std::optional<Settled> settled = {};

  bool runs() const { return !settled; }
  const std::string& id() const { return cell.id; }
  /// The rounds of this cell in a run of `all` rounds: a training has one.
  int rounds(int all) const { return forecast.once ? 1 : all; }
  /// Whether its time is a result. Of a training only what it learned is.
  bool is_timed() const { return !forecast.once; }
};

/// Plans the cells; `forecasts` are in the cells' order; `memory_limit` returns the bytes that a
/// cell may take (0 = no limit). Throws CellsRefused where a forecast says that its cell makes no
/// sense: then nothing runs.
std::vector<Planned> plan_cells(const std::vector<Cell>& cells,
                                const std::vector<Forecast>& forecasts,
                                const std::function<std::int64_t(const Cell& cell)>& memory_limit);

}  // namespace attnbench::run
