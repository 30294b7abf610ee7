#include "harness/measure/interference.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <semaphore>
#include <set>
#include <sstream>
#include <string>
#include <thread>

#include "core/statistics.hpp"

namespace attnbench::measure {
namespace {

/// Threads come and go between calls, seldom within one: they are listed this often.
constexpr double listing_seconds = 10e-3;

double monotonic_seconds() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

double process_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// "0-1,4" as 0, 1, 4.
std::vector<int> cpus_in(const std::string& list) {
  std::vector<int> cpus;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto dash = part.find('-');
    const int first = std::atoi(part.c_str());
    const int last = dash == std::string::npos ? first : std::atoi(part.c_str() + dash + 1);
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return cpus;
}

/// How long one thread waited for a CPU, as the kernel counts it (schedstat).
struct Waited {
  double seconds = 0;
  std::int64_t times = 0;  ///< how often it was given a CPU
};

/// False where the thread has ended.
bool read_waited(int file, Waited& waited) {
  std::array<char, 96> text{};
  const ssize_t bytes = pread(file, text.data(), text.size() - 1, 0);
  if (bytes <= 0) return false;
  char* at = text.data();
  std::strtoull(at, &at, 10);  // the time it ran
  waited.seconds = 1e-9 * static_cast<double>(std::strtoull(at, &at, 10));
  waited.times = static_cast<std::int64_t>(std::strtoull(at, &at, 10));
  return true;
}

int open_waited(const std::string& id) {
  return open(("/proc/self/task/" + id + "/schedstat").c_str(), O_RDONLY | O_CLOEXEC);
}

/// How long a thread that was woken waited for its CPU, each time.
std::vector<double> waits_of_a_woken_thread(int wakes) {
  std::binary_semaphore ready(0);
  std::binary_semaphore go(0);
  std::atomic<int> id{0};
  std::thread sleeper([&] {
    id = gettid();
    ready.release();
    for (int wake = 0; wake < wakes; ++wake) {
      go.acquire();
      ready.release();
    }
  });
  ready.acquire();
  std::vector<double> waits;
  const int file = open_waited(std::to_string(id));
  for (int wake = 0; wake < wakes; ++wake) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));  // until it and its CPU sleep
    Waited before;
    Waited after;
    bool known = file >= 0 && read_waited(file, before);
    go.release();
    ready.acquire();
    known = known && wake + 1 < wakes && read_waited(file, after);
    if (known && after.times > before.times) waits.push_back(after.seconds - before.seconds);
  }
  sleeper.join();
  if (file >= 0) close(file);
  return waits;
}

double measured_wake_seconds() {
  constexpr double least = 3e-6;
  constexpr double most = 50e-6;
  const std::vector<double> waits = waits_of_a_woken_thread(40);
  return waits.empty() ? most : std::clamp(2 * median(waits), least, most);
}

}  // namespace

double wake_seconds() {
  static const double seconds = measured_wake_seconds();
  return seconds;
}

bool is_preempted(const Interference& beside, double seconds) {
  return beside.lost_seconds > preempted_share * seconds;
}

ThreadWatch::~ThreadWatch() {
  for (const auto& [id, thread] : threads_) close(thread.file);
}

ThreadWatch::Usage ThreadWatch::usage() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return {used.ru_nivcsw, used.ru_minflt};
}

/// A new thread starts with a wait of 0: it was created during the watch.
void ThreadWatch::list_threads() {
  DIR* const tasks = opendir("/proc/self/task");
  if (tasks == nullptr) return;
  while (const dirent* entry = readdir(tasks)) {
    const int id = std::atoi(entry->d_name);
    if (id <= 0 || threads_.count(id) != 0) continue;
    const int file = open_waited(entry->d_name);
    if (file >= 0) threads_[id].file = file;
  }
  closedir(tasks);
  listed_at_ = monotonic_seconds();
}

void ThreadWatch::begin() {
  wake_seconds();  // now, not while something is timed
  if (listed_at_ < 0 || monotonic_seconds() - listed_at_ > listing_seconds) list_threads();
  for (auto at = threads_.begin(); at != threads_.end();) {
    Waited waited;
    if (read_waited(at->second.file, waited)) {
      at->second.waited_seconds = waited.seconds;
      at->second.times = waited.times;
      ++at;
      continue;
    }
    close(at->second.file);
    at = threads_.erase(at);
  }
  before_ = usage();
  cpu_before_ = process_seconds();  // nearest to what is timed, like the one at the end
}

Interference ThreadWatch::end() {
  Interference beside;
  beside.cpu_seconds = process_seconds() - cpu_before_;
  const Usage after = usage();
  page_faults_ = after.faults - before_.faults;
  beside.switches = after.switches - before_.switches;
  if (threads_.empty()) {
    beside.lost_seconds = slice_seconds * static_cast<double>(beside.switches);
    return beside;
  }
  if (monotonic_seconds() - listed_at_ > listing_seconds) list_threads();
  double waited = 0;
  std::int64_t times = 0;
  for (const auto& [id, thread] : threads_) {
    Waited since;
    if (!read_waited(thread.file, since)) continue;
    waited += since.seconds - thread.waited_seconds;
    times += since.times - thread.times;
  }
  // A wait after an involuntary switch is a preemption, however short.
  const std::int64_t wakes = std::max<std::int64_t>(0, times - beside.switches);
  beside.lost_seconds = std::max(0.0, waited - wake_seconds() * static_cast<double>(wakes));
  return beside;
}

CpuTimes cpu_times(const std::vector<int>& cpus) {
  const std::set<int> wanted(cpus.begin(), cpus.end());
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  CpuTimes times;
  std::ifstream stream("/proc/stat");
  for (std::string line; std::getline(stream, line);) {
    if (line.rfind("cpu", 0) != 0 || line.size() < 5 || line[3] == ' ') continue;
    std::istringstream fields(line.substr(3));
    int cpu = 0;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, soft = 0, stolen = 0;
    if (!(fields >> cpu >> user >> nice >> system >> idle >> waiting >> irq >> soft >> stolen)) {
      continue;
    }
    if (wanted.count(cpu) == 0) continue;
    const double busy = user + nice + system + irq + soft;
    times.busy_seconds += tick * busy;
    times.stolen_seconds += tick * stolen;
    times.total_seconds += tick * (busy + idle + waiting + stolen);
  }
  times.own_seconds = process_seconds();
  return times;
}

CpuShares cpu_shares(const CpuTimes& before, const CpuTimes& after) {
  const double total = after.total_seconds - before.total_seconds;
  CpuShares shares;
  if (total <= 0) return shares;
  shares.known = true;
  const double own = after.own_seconds - before.own_seconds;
  shares.stolen_seconds = after.stolen_seconds - before.stolen_seconds;
  shares.others_seconds = std::max(0.0, after.busy_seconds - before.busy_seconds - own);
  shares.stolen = shares.stolen_seconds / total;
  shares.others = std::min(1.0, shares.others_seconds / total);
  return shares;
}

bool waited_for_own(double lost_seconds, const CpuShares& shares) {
  constexpr double step = 0.02;  // of what /proc/stat can tell apart
  const double others = shares.others_seconds + shares.stolen_seconds + step;
  return shares.known && others < lost_seconds / 4;
}

bool is_crowded(double lost_share, const CpuShares& shares) {
  // On two CPUs, one busy process takes 0.2 to 0.4 of the time from calls of two threads, two take
  // 0.42 to 0.55. Medians of the samples left over were right in the first case, and up to 1.3
  // times the idle ones in the second.
  constexpr double others_limit = 0.45;
  constexpr double lost_limit = 0.5;
  return shares.known && shares.others > others_limit && lost_share > lost_limit;
}

std::vector<int> shared_cores(const std::vector<int>& cpus) {
  std::set<int> all;
  bool shared = false;
  for (const int cpu : cpus) {
    std::ifstream stream("/sys/devices/system/cpu/cpu" + std::to_string(cpu) +
                         "/topology/thread_siblings_list");
    std::string list;
    if (!std::getline(stream, list)) continue;
    const std::vector<int> siblings = cpus_in(list);
    shared = shared || siblings.size() > 1;
    all.insert(siblings.begin(), siblings.end());
  }
  return shared ? std::vector<int>(all.begin(), all.end()) : std::vector<int>{};
}

}  // namespace attnbench::measure
