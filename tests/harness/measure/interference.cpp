#include "harness/measure/interference.hpp"

#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <thread>

#include "harness/measure/device.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::measure;

namespace {

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

void spin(double seconds) {
  const double end = now() + seconds;
  while (now() < end) {
  }
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<std::size_t>(cpu), &set);
  REQUIRE(sched_setaffinity(0, sizeof(set), &set) == 0);
}

/// Another process that keeps one CPU busy while this lives.
class BusyProcess {
 public:
  explicit BusyProcess(int cpu) : pid_(fork()) {
    if (pid_ != 0) return;
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(cpu), &set);
    if (sched_setaffinity(0, sizeof(set), &set) != 0) _exit(1);
    alarm(60);
    for (std::atomic<int> step{0};; ++step) {
    }
  }
  ~BusyProcess() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  BusyProcess(const BusyProcess&) = delete;
  BusyProcess& operator=(const BusyProcess&) = delete;

 private:
  pid_t pid_;
};

/// In a thread of its own, which alone is pinned.
void on_cpu(int cpu, const std::function<void()>& body) {
  std::thread thread([&] {
    pin(cpu);
    body();
  });
  thread.join();
}

bool kernel_tells() { return std::ifstream("/proc/self/schedstat").good(); }

}  // namespace

TEST_CASE("a call beside another process on its CPU is preempted", "[interference]") {
  const int cpu = allowed_cpus().back();
  const BusyProcess other(cpu);
  on_cpu(cpu, [] {
    ThreadWatch watch;
    spin(0.02);  // until the scheduler has both
    watch.begin();
    const double start = now();
    spin(0.2);
    const double seconds = now() - start;
    const Interference beside = watch.end();
    CHECK(is_preempted(beside, seconds));
    CHECK(beside.switches > 0);
    CHECK(beside.lost_seconds > 0.2 * seconds);
    CHECK(beside.cpu_seconds < 0.8 * seconds);
  });
}

TEST_CASE("a team thread that waits for a busy CPU is seen by those that wait for it",
          "[interference]") {
  if (!kernel_tells()) return;
  const int cpu = allowed_cpus().back();
  const BusyProcess other(cpu);
  std::atomic<int> wanted{0};
  std::atomic<int> made{0};
  std::atomic<bool> stop{false};
  // It never sleeps, so that whatever it loses is lost in the queue of its CPU.
  std::thread member([&] {
    pin(cpu);
    while (!stop) made = wanted.load();
  });
  ThreadWatch watch;
  double lost = 0;
  const double end = now() + 0.3;
  while (now() < end) {
    watch.begin();
    ++wanted;
    while (made != wanted) std::this_thread::yield();
    lost += watch.end().lost_seconds;
  }
  stop = true;
  member.join();
  CHECK(lost > 0.03);
}

TEST_CASE("an undisturbed call has lost nothing", "[interference]") {
  ThreadWatch watch;
  int clean = 0;
  // However busy the machine is, some calls of a fifth of a millisecond find it free.
  for (int call = 0; call < 500 && clean < 5; ++call) {
    watch.begin();
    const double start = now();
    spin(2e-4);
    const double seconds = now() - start;
    const Interference beside = watch.end();
    if (is_preempted(beside, seconds)) continue;
    ++clean;
    CHECK(beside.cpu_seconds > 0);
  }
  CHECK(clean == 5);
}

TEST_CASE("a sleeping thread waits for no CPU and uses none", "[interference]") {
  ThreadWatch watch;
  // The least of many: what a busy machine charges to one of them is not the thread's.
  double least_lost = 1, least_used = 1;
  for (int call = 0; call < 1000 && (least_used >= 0.001 || least_lost >= 1e-4); ++call) {
    watch.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    const Interference beside = watch.end();
    least_used = std::min(least_used, beside.cpu_seconds);
    least_lost = std::min(least_lost, beside.lost_seconds);
  }
  CHECK(least_used < 0.001);
  CHECK(least_lost < 1e-4);
}

TEST_CASE("a wait counts from a fiftieth of the call on", "[interference]") {
  Interference beside;
  beside.lost_seconds = 1e-3;
  CHECK(is_preempted(beside, 0.04));
  CHECK_FALSE(is_preempted(beside, 0.06));
  beside.lost_seconds = 0;
  beside.switches = 3;
  CHECK_FALSE(is_preempted(beside, 1e-5));
}

TEST_CASE("shares of CPU time are those of others and of the hypervisor", "[interference]") {
  CpuTimes before{100, 50, 1, 20};
  CpuTimes after{110, 58, 2, 23};  // 10 s of CPUs: 8 s busy, 3 of them ours, 1 s stolen
  const CpuShares shares = cpu_shares(before, after);
  CHECK(shares.known);
  CHECK(shares.others == Approx(0.5));
  CHECK(shares.others_seconds == Approx(5));
  CHECK(shares.stolen == Approx(0.1));
  CHECK_FALSE(cpu_shares(before, before).known);
  // Who waited that long while others took so little waited for threads of its own.
  CHECK_FALSE(waited_for_own(5, shares));
  after = {110, 53.1, 1, 23};
  CHECK(waited_for_own(5, cpu_shares(before, after)));
  CHECK_FALSE(waited_for_own(0.1, cpu_shares(before, after)));
  CHECK_FALSE(waited_for_own(5, CpuShares()));
}

TEST_CASE("a machine is crowded where others keep most CPUs busy and we wait", "[interference]") {
  CpuShares shares;
  CHECK_FALSE(is_crowded(1.0, shares));
  shares.known = true;
  shares.others = 0.5;
  CHECK(is_crowded(1.0, shares));
  CHECK_FALSE(is_crowded(0.01, shares));  // the other CPU was busy, ours was not
  shares.others = 0.4;
  CHECK_FALSE(is_crowded(1.0, shares));  // one of two CPUs
}

TEST_CASE("a busy process is in the times of its CPU", "[interference]") {
  const std::vector<int> last{allowed_cpus().back()};
  const BusyProcess other(last.front());
  const CpuTimes before = cpu_times(last);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  const CpuShares shares = cpu_shares(before, cpu_times(last));
  REQUIRE(shares.known);
  CHECK(shares.others > 0.5);
  CHECK(cpu_times({}).total_seconds == 0);
}
