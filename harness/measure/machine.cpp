#include "harness/measure/machine.hpp"
#include "harness/measure/noise_sources.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "harness/measure/ceilings_cpu.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/neighbours.hpp"
#include "harness/measure/processor.hpp"

namespace attnbench::measure {
namespace {

/// The kernel counts CPU time in hundredths of a second.
constexpr double look_seconds = 0.25;

std::string first_line(const std::string& file) {
  std::ifstream stream(file);
  std::string line;
  std::getline(stream, line);
  return line;
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\"");
  const auto last = text.find_last_not_of(" \t\"");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

/// The value after `key` and `separator` in the first line of `file` that starts with `key`.
std::string value_of(const std::string& file, const std::string& key, char separator) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const auto at = line.find(separator);
    if (at != std::string::npos && trimmed(line.substr(0, at)) == key) {
      return trimmed(line.substr(at + 1));
    }
  }
  return "";
}

result::Load load() {
  std::istringstream line(first_line("/proc/loadavg"));
  double one = 0;
  double five = 0;
  double fifteen = 0;
  line >> one >> five >> fifteen;
  return {one, five, fifteen, to_json(neighbours(look_seconds)).get<Values>()};
}

/// CPUs that a container's quota lets us use; a missing file or "max" means that there is no quota.
std::optional<double> cpu_quota() {
  std::istringstream line(first_line("/sys/fs/cgroup/cpu.max"));
  double quota = 0;
  double period = 0;
  if (!(line >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

/// The variables that are known to change how fast the libraries below us run.
std::map<std::string, std::string> environment() {
  std::map<std::string, std::string> found;
  for (const char* name :
       {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
        "OMP_PROC_BIND", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "GOMP_CPU_AFFINITY",
        "MKL_NUM_THREADS", "MKL_ENABLE_INSTRUCTIONS", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY",
        "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES", "LD_PRELOAD"}) {
    if (const char* value = std::getenv(name)) found[name] = value;
  }
  return found;
}

}  // namespace

result::MachineCard machine_card() {
  result::MachineCard card;
  utsname name{};
  if (uname(&name) == 0) {
    card.host = name.nodename;
    card.kernel = std::string(name.sysname) + " " + name.release;
    card.architecture = name.machine;
  }
  card.os = value_of("/etc/os-release", "PRETTY_NAME", '=');
  const Processor cpu = processor();
  card.cpu_model = cpu.model;
  if (cpu.cores > 0) card.cores = cpu.cores;
  card.threads = std::max(1U, std::thread::hardware_concurrency());
  card.allowed_cpus = allowed_cpus();
  card.cpu_quota = cpu_quota();
  const CacheSizes caches = cache_sizes();
  card.caches = result::Caches{caches.l1, caches.l2, caches.l3};
  card.memory_bytes = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::int64_t>(sysconf(_SC_PAGE_SIZE));
  card.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (cpu.megahertz > 0) card.clock_hz = 1e6 * cpu.megahertz;
  card.virtualised = cpu.virtualised;
  card.isa = cpu.isa;
  card.load = load();
  card.environment = environment();
  card.noise_sources = noise_sources(card);
  return card;
}

void note_neighbours(result::MachineCard& card, const Neighbours& now) {
  const std::vector<std::string> then = noise_sources(card);
  if (!card.load) card.load.emplace();
  const Json others = to_json(now);
  for (const auto& [name, value] : others.items()) card.load->further[name] = value;
  std::vector<std::string> sources = noise_sources(card);
  for (const std::string& sentence : card.noise()) {
    if (std::find(then.begin(), then.end(), sentence) == then.end()) sources.push_back(sentence);
  }
  card.noise_sources = sources;
}

}  // namespace attnbench::measure
