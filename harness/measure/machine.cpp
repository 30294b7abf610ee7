#include "harness/measure/machine.hpp"
#include "harness/measure/noise_sources.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <thread>

#include "harness/measure/ceilings_cpu.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/neighbours.hpp"

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

void put(Json& card, const std::string& key, const std::string& text) {
  if (!text.empty()) card[key] = text;
}

int physical_cores() {
  std::ifstream stream("/proc/cpuinfo");
  std::set<std::string> cores;
  std::string package;
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind("physical id", 0) == 0) package = line;
    if (line.rfind("core id", 0) == 0) cores.insert(package + line);
  }
  return static_cast<int>(cores.size());
}

Json load() {
  std::istringstream line(first_line("/proc/loadavg"));
  double one = 0;
  double five = 0;
  double fifteen = 0;
  line >> one >> five >> fifteen;
  Json found = to_json(neighbours(look_seconds));
  found["average_1_minute"] = one;
  found["average_5_minutes"] = five;
  found["average_15_minutes"] = fifteen;
  return found;
}

/// CPUs that a container's quota lets us use; nothing said, or "max", is no quota.
std::optional<double> cpu_quota() {
  std::istringstream line(first_line("/sys/fs/cgroup/cpu.max"));
  double quota = 0;
  double period = 0;
  if (!(line >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

/// The variables that are known to change how fast the libraries below us run.
Json environment() {
  Json found = Json::object();
  for (const char* name :
       {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS",
        "OMP_PROC_BIND", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "GOMP_CPU_AFFINITY",
        "MKL_NUM_THREADS", "MKL_ENABLE_INSTRUCTIONS", "DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY",
        "MALLOC_ARENA_MAX", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES", "LD_PRELOAD"}) {
    if (const char* value = std::getenv(name)) found[name] = value;
  }
  return found;
}

Json instruction_sets(const std::string& flags) {
  std::istringstream words(flags);
  const std::set<std::string> known{
      "avx",         "avx2",        "fma",         "f16c",     "avx512f",  "avx512bw", "avx512vl",
      "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_bf16", "amx_int8", "asimd",    "sve"};
  Json found = Json::array();
  for (std::string word; words >> word;) {
    if (known.count(word) != 0) found.push_back(word);
  }
  return found;
}

}  // namespace

Json machine_card() {
  Json card = Json::object();
  utsname name{};
  if (uname(&name) == 0) {
    put(card, "host", name.nodename);
    put(card, "kernel", std::string(name.sysname) + " " + name.release);
    put(card, "architecture", name.machine);
  }
  put(card, "os", value_of("/etc/os-release", "PRETTY_NAME", '='));
  put(card, "cpu_model", value_of("/proc/cpuinfo", "model name", ':'));
  if (const int cores = physical_cores(); cores > 0) card["cores"] = cores;
  card["threads"] = std::max(1U, std::thread::hardware_concurrency());
  card["allowed_cpus"] = allowed_cpus();
  if (const auto quota = cpu_quota()) card["cpu_quota"] = *quota;
  const CacheSizes caches = cache_sizes();
  card["caches"] = {{"l1_bytes", caches.l1}, {"l2_bytes", caches.l2}, {"l3_bytes", caches.l3}};
  card["memory_bytes"] = static_cast<std::int64_t>(sysconf(_SC_PHYS_PAGES)) *
                         static_cast<std::int64_t>(sysconf(_SC_PAGE_SIZE));
  put(card, "governor", first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"));
  const double megahertz = std::atof(value_of("/proc/cpuinfo", "cpu MHz", ':').c_str());
  if (megahertz > 0) card["clock_hz"] = 1e6 * megahertz;
  const std::string flags = value_of("/proc/cpuinfo", "flags", ':');
  card["virtualised"] = (" " + flags + " ").find(" hypervisor ") != std::string::npos;
  card["isa"] = instruction_sets(flags);
  card["load"] = load();
  card["environment"] = environment();
  card["spoilers"] = noise_sources(card);
  return card;
}

void note_neighbours(Json& card, const Neighbours& now) {
  const std::vector<std::string> then = noise_sources(card);
  card["load"].update(to_json(now));
  Json told = Json::array();
  for (const std::string& sentence : noise_sources(card)) told.push_back(sentence);
  for (const Json& sentence : card.value("spoilers", Json::array())) {
    if (std::find(then.begin(), then.end(), sentence) == then.end()) told.push_back(sentence);
  }
  card["spoilers"] = told;
}

}  // namespace attnbench::measure
