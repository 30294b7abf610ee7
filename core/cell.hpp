// Cell: one point of a suite, with every size worked out. The suite's expansion makes it; the
// journal, the protocol and the result carry it.
// Forecast: what a task and a mechanism predict of a cell before it runs. The worker makes it, the
// supervisor plans by it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/claims.hpp"
#include "core/option_json.hpp"
#include "core/problem.hpp"
#include "core/status.hpp"

namespace attnbench {

/// The sizes alone: neither device nor gradient.
void to_json(nlohmann::json& json, const Problem& problem);
/// Throws UsageError.
void from_json(const nlohmann::json& json, Problem& problem);

struct Cell {
  std::string id;     ///< unique in its run, and the name of its files
  std::string label;  ///< of its suite entry
  std::string task;
  std::string task_label;  ///< the suite's name for the task
  std::string mechanism;
  std::string implementation = "auto";
  std::string device = "cpu";
  OptionValues options;   ///< of the mechanism: those that were set, sizes evaluated
  OptionValues settings;  ///< of the task: all of them
  /// Settings and options that differ between the suite's cells; absent in cells of no suite.
  std::optional<std::vector<std::string>> varies = {};
  /// Whether the mechanism could not say its options, so that none that was set is in `options`.
  /// Not written.
  bool options_unknown = false;

  bool on_cpu() const { return device == "cpu"; }
};

void to_json(nlohmann::json& json, const Cell& cell);
/// Throws UsageError. Only `varies` may be missing.
void from_json(const nlohmann::json& json, Cell& cell);

struct Forecast {
  std::string id;  ///< of the cell
  bool supported = true;
  std::string reason;                   ///< why it is not supported, or why the forecast failed
  std::string implementation;           ///< the one that will run
  std::string implementation_reason;    ///< why that one
  Cost cost;                            ///< of one timed call, for the whole problem
  Growth growth;                        ///< claimed exponents of the implementation
  std::optional<double> peak_bytes;     ///< of all tensors together
  std::optional<OptionValues> options;  ///< of the mechanism, resolved and derived
  std::optional<Problem> problem;       ///< absent where the forecast failed
  bool once = false;                    ///< a training: one round, whatever the run's
  /// The calls that the longest timed body makes one after another; absent where it makes one.
  std::optional<std::int64_t> calls;
  std::optional<Cost> calls_cost;    ///< of all of them together
  std::optional<Cost> prefill_cost;  ///< of reading a context, which is timed by itself
  /// Of what each round does before its clock starts: reading the past of a call.
  std::optional<Cost> unclocked_cost = {};
  /// How making the forecast failed, with the end of the log.
  std::optional<Status> status;
  std::string detail;
  bool refused = false;  ///< the cell makes no sense: the whole run is refused
};

void to_json(nlohmann::json& json, const Forecast& forecast);
/// Throws UsageError. `id` and `supported` must be there; implementation, cost and growth where
/// `problem` is.
void from_json(const nlohmann::json& json, Forecast& forecast);

}  // namespace attnbench
