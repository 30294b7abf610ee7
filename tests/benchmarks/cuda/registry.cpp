#include "tests/benchmarks/cuda/registry.hpp"

#include <benchmark/benchmark.h>

#include <exception>

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
  auto& counters = state.counters;
  counters["useful_flops_per_second"] = work.cost.useful_flops / timing.median;
  counters["minimal_bytes_per_second"] = work.cost.minimal_bytes / timing.median;
  counters["exponentials_per_second"] = work.cost.exponentials / timing.median;
  counters["low_seconds"] = timing.low;
  counters["high_seconds"] = timing.high;
  counters["minimum_seconds"] = timing.minimum;
  counters["samples"] = timing.samples;
  counters["launches_a_sample"] = timing.launches;
  counters["graph"] = timing.graph;
  counters["sets"] = work.sets;
  counters["clock_hz"] = timing.clock_hz;
  counters["workspace_bytes"] = static_cast<double>(work.workspace_bytes);
  state.SetLabel(work.cost.gemm);
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

int failures() { return failed; }

}  // namespace attnbench::bench
