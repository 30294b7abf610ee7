#include "core/process/limits.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <thread>

#include "core/failure.hpp"
#include "core/hash.hpp"

namespace attnbench::process {
namespace {

/// The number in a control group's file; "max" and a missing file mean no limit.
std::int64_t number_in(const char* file) {
  std::ifstream stream(file);
  std::int64_t number = 0;
  return stream >> number ? number : std::numeric_limits<std::int64_t>::max();
}

/// `key` of a file of "key number" lines, 0 where there is none.
std::int64_t entry_in(const char* file, const std::string& key) {
  std::ifstream stream(file);
  std::string name;
  std::int64_t number = 0;
  while (stream >> name >> number) {
    if (name == key) return number;
    stream.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return 0;
}

std::int64_t control_group_bytes() {
  const std::int64_t limit = number_in("/sys/fs/cgroup/memory.max");
  if (limit == std::numeric_limits<std::int64_t>::max()) return limit;
  // The page cache counts as used, and is given back when memory is needed.
  const std::int64_t used = number_in("/sys/fs/cgroup/memory.current") -
                            entry_in("/sys/fs/cgroup/memory.stat", "inactive_file");
  return std::clamp<std::int64_t>(limit - used, 0, limit);
}

}  // namespace

std::int64_t parse_bytes(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  std::string unit = end;
  if (unit.size() > 1 && unit.back() == 'B') unit.pop_back();
  if (unit.size() > 1 && unit.back() == 'i') unit.pop_back();
  const std::string units = "BKMGT";
  const std::size_t power = unit.empty() ? 0
                            : unit.size() == 1
                                ? units.find(static_cast<char>(std::toupper(unit[0])))
                                : units.npos;
  const double bytes =
      power == units.npos ? -1 : number * std::pow(1024.0, static_cast<double>(power));
  if (end == text.c_str() || !(bytes >= 1) || bytes > 9e18) {
    throw UsageFailure("\"" + text +
                       "\" is not an amount of memory: expected one such as 512M or 20G");
  }
  return static_cast<std::int64_t>(bytes);
}

std::int64_t available_memory_bytes() {
  const std::int64_t kibibytes = entry_in("/proc/meminfo", "MemAvailable:");
  return std::min(kibibytes * 1024, control_group_bytes());
}

int usable_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

bool Shard::holds(const std::string& cell_id) const {
  const std::string digits = hash_text(cell_id).substr(0, 15);
  return std::stoull(digits, nullptr, 16) % static_cast<unsigned>(count) ==
         static_cast<unsigned>(index - 1);
}

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char* const last = text.data() + text.size();
  const auto first = std::from_chars(text.data(), last, shard.index);
  const bool slash = first.ec == std::errc() && first.ptr != last && *first.ptr == '/';
  const auto second = slash ? std::from_chars(first.ptr + 1, last, shard.count) : first;
  if (!slash || second.ec != std::errc() || second.ptr != last || shard.index < 1 ||
      shard.index > shard.count) {
    throw UsageFailure("--shard " + text + ": expected I/N with 1 <= I <= N, such as 2/8");
  }
  return shard;
}

}  // namespace attnbench::process
