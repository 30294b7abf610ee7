#include "harness/measure/neighbours.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "core/json_object.hpp"
#include "harness/measure/device.hpp"

namespace attnbench::measure {
namespace {

namespace fs = std::filesystem;

/// Below this others are what every machine has: a clock, a log, an editor.
constexpr double worth_saying = 0.3;
/// A process that is not worth a name.
constexpr double idle_process = 0.03;
constexpr std::size_t max_named = 5;

double ticks_per_second() { return static_cast<double>(sysconf(_SC_CLK_TCK)); }

/// The kernel truncates names to 15 bytes, possibly inside a UTF-8 sequence.
std::string printable(std::string name) {
  for (char& c : name) {
    if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte > 0x7e) c = '?';
  }
  return name;
}

/// The process that a line of /proc/PID/stat describes; empty if the line is malformed.
std::optional<ProcessTimes::Process> process_from(const std::string& line) {
  const std::size_t open = line.find('(');
  const std::size_t close = line.rfind(')');  // the name in parentheses may hold anything
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  std::istringstream rest(line.substr(close + 1));
  std::string state;
  ProcessTimes::Process process;
  process.name = printable(line.substr(open + 1, close - open - 1));
  rest >> state >> process.parent;
  std::string skipped;
  for (int field = 5; field <= 13; ++field) rest >> skipped;
  double user = 0;
  double system = 0;
  double ended_user = 0;
  double ended_system = 0;
  rest >> user >> system >> ended_user >> ended_system;
  for (int field = 18; field <= 21; ++field) rest >> skipped;
  if (!(rest >> process.started)) return std::nullopt;
  process.seconds = (user + system) / ticks_per_second();
  process.ended_seconds = (ended_user + ended_system) / ticks_per_second();
  return process;
}

/// CPU seconds that our CPUs were busy, from the lines "cpuN user nice system idle iowait irq
/// softirq steal guest …"; guests are in user and nice.
double busy_seconds(const std::vector<int>& cpus, const fs::path& stat) {
  std::ifstream stream(stat);
  double sum = -1;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name.size() < 4 || name.compare(0, 3, "cpu") != 0) continue;
    const int cpu = std::atoi(name.c_str() + 3);
    if (std::find(cpus.begin(), cpus.end(), cpu) == cpus.end()) continue;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, hard = 0, soft = 0, stolen = 0;
    words >> user >> nice >> system >> idle >> waiting >> hard >> soft >> stolen;
    sum = std::max(sum, 0.0) + (user + nice + system + hard + soft + stolen) / ticks_per_second();
  }
  return sum;
}

/// `self` and all that descends from it.
std::set<int> process_tree(const ProcessTimes& times, int self) {
  std::set<int> ours{self};
  for (bool grew = true; grew;) {
    grew = false;
    for (const auto& [pid, process] : times.processes) {
      if (ours.count(process.parent) != 0 && ours.insert(pid).second) grew = true;
    }
  }
  return ours;
}

std::string rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

}  // namespace

ProcessTimes process_times(const std::vector<int>& cpus, const fs::path& proc) {
  ProcessTimes times;
  times.at =
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  times.busy = busy_seconds(cpus, proc / "stat");
  std::error_code error;
  for (fs::directory_iterator entry(proc, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (name.size() > 9 || name.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream stream(entry->path() / "stat");
    const std::string line{std::istreambuf_iterator<char>(stream), {}};
    if (const auto process = process_from(line)) times.processes[std::stoi(name)] = *process;
  }
  return times;
}

Neighbours neighbours_between(const ProcessTimes& before, const ProcessTimes& after, int self) {
  const double passed = std::max(1e-3, after.at - before.at);
  const std::set<int> ours = process_tree(after, self);
  double own = 0;
  double seen = 0;
  Neighbours found;
  for (const auto& [pid, process] : after.processes) {
    const auto then = before.processes.find(pid);
    const bool same = then != before.processes.end() && then->second.started == process.started;
    const double used = process.seconds - (same ? then->second.seconds : 0);
    if (ours.count(pid) != 0) {
      own += used + process.ended_seconds - (same ? then->second.ended_seconds : 0);
      continue;
    }
    seen += used;
    if (used / passed >= idle_process) {
      found.processes.push_back({pid, process.name, used / passed});
    }
  }
  std::stable_sort(found.processes.begin(), found.processes.end(),
                   [](const Neighbour& a, const Neighbour& b) { return a.cpus > b.cpus; });
  const bool counted = before.busy >= 0 && after.busy >= 0;
  found.cpus = std::max(0.0, (counted ? after.busy - before.busy - own : seen) / passed);
  return found;
}

Neighbours neighbours(double seconds) {
  const std::vector<int> cpus = allowed_cpus();
  const ProcessTimes before = process_times(cpus);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return neighbours_between(before, process_times(cpus), getpid());
}

bool crowded(const Neighbours& neighbours, double threads, int cpus) {
  return neighbours.cpus >= worth_saying && neighbours.cpus + threads > cpus + 0.1;
}

std::string to_text(const Neighbours& neighbours, int cpus) {
  if (neighbours.cpus < worth_saying) return "";
  std::string text = "Other processes keep " + rounded(neighbours.cpus) + " of " +
                     std::to_string(cpus) + (cpus == 1 ? " CPU busy" : " CPUs busy");
  const std::size_t named = std::min(neighbours.processes.size(), max_named);
  for (std::size_t i = 0; i < named; ++i) {
    const Neighbour& process = neighbours.processes[i];
    text += (i == 0 ? ": " : ", ") + process.name + " (" + std::to_string(process.pid) + ") " +
            std::to_string(std::lround(100 * process.cpus)) + " %";
  }
  if (named == 0) text += "; they are not seen from here, or come and go";
  if (neighbours.processes.size() > named) {
    text += " and " + std::to_string(neighbours.processes.size() - named) + " more";
  }
  return text + ".";
}

nlohmann::json to_json(const Neighbours& neighbours) {
  nlohmann::json processes = nlohmann::json::array();
  for (const Neighbour& process : neighbours.processes) {
    if (processes.size() == max_named) break;
    processes.push_back({{"pid", process.pid}, {"name", process.name}, {"cpus", process.cpus}});
  }
  return {{"busy_cpus_beside_us", neighbours.cpus}, {"processes", processes}};
}

ATTNBENCH_JSON_READER(Neighbour) { JSON_MAYBE(pid, name, cpus); }

ATTNBENCH_JSON_READER(Neighbours) {
  json.maybe("busy_cpus_beside_us", value.cpus);
  JSON_MAYBE(processes);
}

Neighbours neighbours_from(const nlohmann::json& load) { return load.get<Neighbours>(); }

}  // namespace attnbench::measure
