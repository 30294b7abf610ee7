#include <sched.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "harness/measure/ceilings_cpu.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/interference.hpp"

namespace attnbench::measure {
namespace {

/// The steady clock. A body is done when it returns: nothing on a CPU runs on after it.
class SteadyStopwatch final : public Stopwatch {
 public:
  double time(const std::function<void()>& body) override {
    watch_.begin();
    const double start = now();
    body();
    const double seconds = now() - start;
    beside_ = watch_.end();
    return seconds;
  }
  bool cold() const override { return watch_.page_faults() > few_faults; }
  std::optional<Interference> interference() const override { return beside_; }
  double now() const override {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
  }

 private:
  /// A huge page is one fault, and takes as long to clear as a hundred small ones.
  static constexpr long few_faults = 8;

  ThreadWatch watch_;
  Interference beside_;
};

class Cpu final : public Device {
 public:
  std::string name() const override { return "cpu"; }
  std::string refusal(int) const override { return ""; }
  std::unique_ptr<Stopwatch> stopwatch() const override {
    return std::make_unique<SteadyStopwatch>();
  }
  nlohmann::json ceilings(int threads) const override { return cpu_ceilings(threads); }
  double calibration_seconds(int threads) const override {
    return measure::calibration_seconds(threads);
  }
};

}  // namespace

std::unique_ptr<Device> device_cpu() { return std::make_unique<Cpu>(); }

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::vector<int> pin_to_cpus(int threads) {
  std::vector<int> cpus = allowed_cpus();
  const std::size_t wanted = static_cast<std::size_t>(std::max(1, threads));
  if (cpus.size() <= wanted) return cpus;
  const auto here = std::find(cpus.begin(), cpus.end(), sched_getcpu());
  if (here != cpus.end()) std::rotate(cpus.begin(), here, cpus.end());
  cpus.resize(wanted);
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0) return allowed_cpus();
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

}  // namespace attnbench::measure
