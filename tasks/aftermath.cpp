#include "tasks/aftermath.hpp"

#include <time.h>

#include <charconv>
#include <chrono>
#include <filesystem>
#include <map>
#include <thread>

#include "attention/torch/cuda.hpp"
#include "attention/torch/execution.hpp"
#include "tasks/bits.hpp"

namespace attnbench::tasks {
namespace {

using std::chrono::milliseconds;

/// Threads of a pool spin for a few milliseconds before they sleep.
constexpr milliseconds rest{5};
constexpr milliseconds watched{10};
/// CPU time of one thread in `watched`, above which it is at work. Far above what a thread needs to
/// end or to fall asleep, and what a neighbour on the same CPU leaves of `watched` is far above it.
constexpr double busy_seconds = 1e-3;

/// Of this process.
std::set<int> thread_numbers() {
  std::set<int> numbers;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    const std::string name = entry.path().filename();
    int number = 0;
    std::from_chars(name.data(), name.data() + name.size(), number);
    numbers.insert(number);
  }
  return numbers;
}

/// CPU time of one thread so far; negative where it has ended. The kernel's number of such a clock
/// is the thread's, inverted, before three bits that say "of a thread, as scheduled".
double cpu_seconds(int thread) {
  const auto clock = static_cast<clockid_t>((~static_cast<unsigned>(thread) << 3) | 6U);
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return -1;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

Aftermath::Aftermath() {
  AtenTeam().run([](int) {});
  // A BLAS with threads of its own starts them anew in a forked process, at its first large
  // product.
  static const bool started = [] {
    const at::NoGradGuard no_grad;
    at::mm(at::ones({256, 256}), at::ones({256, 256}));  // kept, it would count as memory in use
    return true;
  }();
  static_cast<void>(started);
  threads_ = thread_numbers();
}

std::string Aftermath::after(const at::Tensor& output) {
  const Snapshot handed_over({{"output", output}});
  synchronize(output.device().str());
  std::this_thread::sleep_for(rest);
  std::map<int, double> before;
  for (const int thread : thread_numbers()) {
    if (threads_.count(thread) == 0) before[thread] = cpu_seconds(thread);
  }
  std::this_thread::sleep_for(watched);
  if (!handed_over.changed().empty()) return "its output changed after the call had returned";
  if (!output.device().is_cpu()) return "";  // the device's own threads wait as they like
  int busy = 0;
  for (const auto& [thread, seconds] : before) {
    const double now = cpu_seconds(thread);
    if (seconds >= 0 && now >= 0 && now - seconds > busy_seconds) ++busy;
  }
  if (busy > 0) {
    said_ = std::to_string(busy) + (busy == 1 ? " thread" : " threads") +
            " that it started went on working after the call had returned";
  }
  return "";
}

}  // namespace attnbench::tasks
