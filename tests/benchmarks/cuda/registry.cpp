#include "tests/benchmarks/cuda/registry.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <exception>

#include "tests/benchmarks/cuda/ceilings.hpp"
#include "tests/benchmarks/cuda/device_loops.hpp"

namespace attnbench::bench {
namespace {

int failed = 0;

/// The work whose turn it is. Its arrays go before the next one's come.
const Work& current(const std::string& name, const std::function<Work()>& prepare) {
  static std::string kept_name;
  static Work kept;
  if (kept_name != name) {
    kept_name.clear();
    kept = {};
    kept = prepare();
    kernels::cuda::synchronize();
    kept_name = name;
  }
  return kept;
}

void report(benchmark::State& state, const Timing& timing, const Work& work) {
  const Cost& cost = work.cost;
  const Ceilings& limits = ceilings();
  auto& counters = state.counters;
  double floor = 0;
  const auto rate = [&](double amount, double limit, const char* name, const char* share) {
    if (amount <= 0) return;
    counters[name] = amount / timing.median;
    if (limit <= 0) return;
    counters[share] = amount / timing.median / limit;
    floor = std::max(floor, amount / limit);
  };
  const auto gemm = limits.gemm_flops_per_second.find(cost.gemm);
  rate(cost.useful_flops, gemm == limits.gemm_flops_per_second.end() ? 0 : gemm->second,
       "useful_flops_per_second", "share_of_gemm");
  rate(cost.minimal_bytes, limits.copy_bytes_per_second, "minimal_bytes_per_second",
       "share_of_copy");
  rate(cost.exponentials, limits.exponentials_per_second, "exponentials_per_second",
       "share_of_exponentials");
  counters["share_of_floor"] = floor / timing.median;
  counters["low_seconds"] = timing.low;
  counters["high_seconds"] = timing.high;
  counters["minimum_seconds"] = timing.minimum;
  counters["samples"] = timing.samples;
  counters["launches_a_sample"] = timing.launches;
  counters["graph"] = timing.graph;
  counters["sets"] = work.sets;
  counters["clock_hz"] = timing.clock_hz;
  counters["workspace_bytes"] = static_cast<double>(work.workspace_bytes);
}

void run(benchmark::State& state, const std::string& name, const std::function<Work()>& prepare) {
  try {
    const Work& work = current(name, prepare);
    const Timing timing = measure(work);
    for (auto _ : state) state.SetIterationTime(timing.median);
    report(state, timing, work);
  } catch (const std::exception& error) {
    forget_error();
    ++failed;
    state.SkipWithError(error.what());
  }
}

}  // namespace

std::string name_of(const std::string& what, const std::string& dtype, const Numbers& numbers) {
  std::string name = what + "/" + dtype;
  for (const auto& [key, value] : numbers) {
    name += "/" + std::string(key) + ":" + std::to_string(value);
  }
  return name + "/attnbench";
}

void add(const std::string& name, std::function<Work()> prepare) {
  // One iteration is one median of ours: Google Benchmark would take the mean.
  benchmark::RegisterBenchmark(
      name.c_str(),
      [name, prepare = std::move(prepare)](benchmark::State& state) { run(state, name, prepare); })
      ->Iterations(1)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

void add_ceilings() {
  add("ceiling_copy/attnbench", copy_work);
  add("ceiling_exponentials/attnbench", exponential_work);
  for (const char* arithmetic : {"bf16", "fp16", "tf32", "fp32"}) {
    add(std::string("ceiling_gemm/") + arithmetic + "/N:8192/cublas",
        [arithmetic] { return gemm_work(arithmetic); });
  }
}

int failures() { return failed; }

}  // namespace attnbench::bench
