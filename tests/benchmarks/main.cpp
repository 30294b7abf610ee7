// The kernels' micro-benchmarks. The context names the FMA peak of this run, so that a rate can be
// read as a share of it.
#include <benchmark/benchmark.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "harness/measure/ceilings_cpu.hpp"
#include "harness/measure/machine.hpp"

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const int threads = static_cast<int>(std::thread::hardware_concurrency());
  const nlohmann::json ceilings = attnbench::measure::cpu_ceilings(threads);
  for (const auto& [name, value] : ceilings.items()) {
    benchmark::AddCustomContext(name, value.dump());
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
