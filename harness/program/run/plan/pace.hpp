// Pace: how long cells take on this machine, learned from what earlier runs measured, for the
// estimates of `attnbench plan`.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "core/cell.hpp"
#include "core/json_object.hpp"
#include "harness/program/suite/cell.hpp"

namespace attnbench::run {

using Json = nlohmann::json;

/// Seconds that cells were estimated to take without experience, and that they took.
struct Spent {
  double estimated = 0;
  double measured = 0;
};

/// An estimate is that of suite::estimated_cell_seconds at the machine's own rates, times what it
/// was off by: of cells of the same task, mechanism and implementation, else of the same task, else
/// of all. Device by device; trainings apart from what is timed.
class Pace {
 public:
  /// Takes the rates of GEMM and memory, where `ceilings` (those of the CPU) has them.
  void learn_rates(const Values& ceilings);
  /// Learns from a cell whose `rounds` rounds took `wall_seconds` together.
  void learn(const Cell& cell, const Forecast& forecast, const Json& measure, int rounds,
             double wall_seconds);

  /// Seconds of a whole cell.
  double cell_seconds(const Cell& cell, const Forecast& forecast, const Json& measure) const;

  const suite::AssumedMachine& machine() const { return machine_; }
  bool has_own_rates() const { return own_rates_; }
  bool has_experience() const { return !spent_.empty(); }

  /// Gives older experience less weight beside what is learned from now on.
  void age();

 private:
  friend void to_json(Json& json, const Pace& pace);
  friend void from_json(const Json& json, Pace& pace);

  suite::AssumedMachine machine_;
  bool own_rates_ = false;
  std::map<std::string, Spent> spent_;  ///< by what cells have in common
};

/// A time as users read it: "1.50 s", "76 s", "12 min", "5.4 h", "26000 h".
std::string human_duration(double seconds);

/// The file in which the pace of a machine with this CPU is kept; empty where there is no cache.
std::filesystem::path pace_file(const std::string& cpu_model);
/// The pace that was learned there; a new one where nothing was, or where the file is damaged.
Pace remembered_pace(const std::filesystem::path& file);
void remember_pace(const std::filesystem::path& file, const Pace& pace);

}  // namespace attnbench::run
