// Forecast: what a task and a mechanism predict of a cell before it runs. The worker makes it, the
// supervisor plans by it, and the result carries it.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/cell.hpp"
#include "core/problem.hpp"
#include "core/result/record.hpp"

namespace attnbench {

/// The sizes alone: neither device nor gradient.
nlohmann::json to_json(const Problem& problem);

namespace run {

/// Finite numbers by name, such as model_flops or time_in_length; core/result/record.hpp lists the
/// names. A number that is not known is absent.
using Numbers = std::map<std::string, double>;

/// As JSON; from_length, which counts tokens, is a whole number.
nlohmann::json growth_json(const Numbers& growth);

struct Forecast {
  std::string id;  ///< of the cell
  bool supported = true;
  std::string reason;                   ///< why it is not supported, or why the forecast failed
  std::string implementation;           ///< the one that will run
  std::string implementation_reason;    ///< why that one
  Numbers cost;                         ///< of one timed call, for the whole problem
  Numbers growth;                       ///< claimed exponents of the implementation
  std::optional<double> peak_bytes;     ///< of all tensors together
  std::optional<OptionValues> options;  ///< of the mechanism, resolved and derived
  std::optional<Problem> problem;       ///< absent where the forecast failed
  bool once = false;                    ///< a training: one round, whatever the run's
  /// How making the forecast failed, with the end of the log.
  std::optional<result::Status> status;
  std::string detail;
  bool refused = false;  ///< the cell makes no sense: the whole run is refused

  double cost_of(const char* name) const;  ///< 0 where it is not known
};

void to_json(nlohmann::json& json, const Forecast& forecast);
/// Throws UsageError. `id` and `supported` must be there.
void from_json(const nlohmann::json& json, Forecast& forecast);

}  // namespace run
}  // namespace attnbench
