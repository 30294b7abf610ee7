// Interference: what other work on the machine took from ours while it was timed.
//
// The kernel counts, for each thread, how long it was ready to run and waited for a CPU
// (/proc/self/task/TID/schedstat). That sees what involuntary context switches do not: a thread of
// a team that is woken on a busy CPU, for which the others then wait.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace attnbench::measure {

/// What happened to the threads of this process during one call.
struct Interference {
  double cpu_seconds = 0;   ///< CPU time of all threads
  long switches = 0;        ///< involuntary context switches
  double lost_seconds = 0;  ///< waited for a CPU, summed over threads
};

/// A call that lost more than this share of its time counts as preempted. The median's interval is
/// to be within ±1 %; an idle kernel's own work stays below this share.
constexpr double preempted_share = 0.02;
bool is_preempted(const Interference& beside, double seconds);

/// The longest time to wake a thread that does not count as waiting for others: twice the median of
/// 40 wakes on this machine, within 3 to 50 µs (a CPU leaves deep sleep in 50 µs). Measured once.
double wake_seconds();

/// Assumed cost of an involuntary switch where the kernel does not report it: a time slice.
constexpr double slice_seconds = 1e-3;

/// Watches all threads of this process from `begin` to `end`. Each takes a few microseconds, mostly
/// outside the watched interval.
class ThreadWatch {
 public:
  ThreadWatch() = default;
  ~ThreadWatch();
  ThreadWatch(const ThreadWatch&) = delete;
  ThreadWatch& operator=(const ThreadWatch&) = delete;

  void begin();
  /// The interference since the last `begin`.
  Interference end();
  /// Page faults of this process during the last watch.
  long page_faults() const { return page_faults_; }

 private:
  struct Thread {
    int file = -1;
    double waited_seconds = 0;
    std::int64_t times = 0;  ///< how often it got a CPU
  };
  struct Usage {
    long switches = 0;
    long faults = 0;
  };

  static Usage usage();
  void list_threads();

  std::map<int, Thread> threads_;  ///< by thread id
  double listed_at_ = -1;
  Usage before_;
  double cpu_before_ = 0;
  long page_faults_ = 0;
};

/// Time of CPUs, summed over them, since the machine started.
struct CpuTimes {
  double total_seconds = 0;
  double busy_seconds = 0;    ///< of all processes
  double stolen_seconds = 0;  ///< used by other virtual machines
  double own_seconds = 0;     ///< CPU time of this process
};
/// Times of these CPUs from /proc/stat, in steps of some 10 ms; zeros where it cannot be read.
CpuTimes cpu_times(const std::vector<int>& cpus);

/// Use of CPUs between two moments, as shares of their time.
struct CpuShares {
  bool known = false;
  double stolen = 0;
  double others = 0;          ///< other processes
  double others_seconds = 0;  ///< of CPU time, not of wall time
  double stolen_seconds = 0;
};
CpuShares cpu_shares(const CpuTimes& before, const CpuTimes& after);
/// Whether our threads waited for each other (there are more of them than CPUs) rather than for
/// other processes, which were hardly busy. Such a wait is not a disturbance.
bool waited_for_own(double lost_seconds, const CpuShares& shares);

/// Whether other work kept so many CPUs busy, and threads of ours waited for so much of the
/// samples' time (`lost_share`), that samples which did not wait are biased as well: they ran
/// between the others' slices, in caches that those had filled.
bool is_crowded(double lost_share, const CpuShares& shares);

/// `cpus` and those that share a core with one of them; empty where no core is shared. A neighbour
/// on the same core slows a thread that never waits.
std::vector<int> shared_cores(const std::vector<int>& cpus);

}  // namespace attnbench::measure
