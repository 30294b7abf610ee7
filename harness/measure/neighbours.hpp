// Neighbours: the processes that keep CPUs busy beside us, by name, from /proc.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace attnbench::measure {

struct Neighbour {
  int pid = 0;
  std::string name;  ///< from the kernel, control characters replaced
  double cpus = 0;   ///< 1 = one CPU all the time
};

struct Neighbours {
  double cpus = 0;                   ///< CPUs kept busy by others, among those that we may use
  std::vector<Neighbour> processes;  ///< visible ones, the busiest first
};

/// The content of /proc at one moment.
struct ProcessTimes {
  struct Process {
    std::string name;
    int parent = 0;
    double seconds = 0;        ///< CPU time without ended children
    double ended_seconds = 0;  ///< CPU time of ended children
    unsigned long long started = 0;
  };
  double at = 0;     ///< seconds of the steady clock
  double busy = -1;  ///< CPU seconds of all processes on our CPUs; negative = unknown
  std::map<int, Process> processes;
};

/// Reads `proc` for these CPUs (see allowed_cpus).
ProcessTimes process_times(const std::vector<int>& cpus,
                           const std::filesystem::path& proc = "/proc");

/// Processes that were busy between two moments, without `self` and its descendants.
Neighbours neighbours_between(const ProcessTimes& before, const ProcessTimes& after, int self);

/// Watches for `seconds`. The load average would still include processes that have ended.
Neighbours neighbours(double seconds);

/// Whether fewer CPUs are free than `threads`, so that our threads wait for others and each other.
bool crowded(const Neighbours& neighbours, double threads, int cpus);

/// The neighbours in a sentence: "Other processes keep 1.9 of 2 CPUs busy: cc1plus (4711) 98 %,
/// ninja (812) 3 %." Empty where others are nearly idle.
std::string to_text(const Neighbours& neighbours, int cpus);

/// Writes the neighbours as {busy_cpus_beside_us, processes: [{pid, name, cpus}]}, of the machine
/// card's `load`.
nlohmann::json to_json(const Neighbours& neighbours);
void from_json(const nlohmann::json& json, Neighbour& neighbour);
void from_json(const nlohmann::json& json, Neighbours& neighbours);
Neighbours neighbours_from(const nlohmann::json& load);

}  // namespace attnbench::measure
