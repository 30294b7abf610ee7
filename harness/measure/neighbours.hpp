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
  std::string name;  ///< as the kernel has it, control characters replaced
  double cpus = 0;   ///< 1 = one CPU all the time
};

struct Neighbours {
  double cpus = 0;                   ///< CPUs that others keep busy, of those that we may run on
  std::vector<Neighbour> processes;  ///< those that are seen from here, the busiest first
};

/// What /proc said at one moment.
struct ProcessTimes {
  struct Process {
    std::string name;
    int parent = 0;
    double seconds = 0;        ///< of CPU time, children that have ended not included
    double ended_seconds = 0;  ///< of CPU time of children that have ended
    unsigned long long started = 0;
  };
  double at = 0;     ///< seconds of the steady clock
  double busy = -1;  ///< CPU seconds of all that ran on our CPUs; negative where it is not told
  std::map<int, Process> processes;
};

/// Reads `proc`; `cpus` are those that count (see allowed_cpus).
ProcessTimes process_times(const std::vector<int>& cpus,
                           const std::filesystem::path& proc = "/proc");

/// Who was busy between two moments beside `self` and all that it started.
Neighbours neighbours_between(const ProcessTimes& before, const ProcessTimes& after, int self);

/// Watches for `seconds`. The load average would still remember the build before us.
Neighbours neighbours(double seconds);

/// Whether `threads` of ours find fewer CPUs than they are: then they wait for others' time slices,
/// and for one another.
bool crowded(const Neighbours& neighbours, double threads, int cpus);

/// "Other processes keep 1.9 of 2 CPUs busy: cc1plus (4711) 98 %, ninja (812) 3 %." Empty where
/// others do next to nothing.
std::string to_text(const Neighbours& neighbours, int cpus);

/// {busy_cpus_beside_us, processes: [{pid, name, cpus}]}, of the machine card's `load`.
nlohmann::json to_json(const Neighbours& neighbours);
Neighbours neighbours_from(const nlohmann::json& load);

}  // namespace attnbench::measure
