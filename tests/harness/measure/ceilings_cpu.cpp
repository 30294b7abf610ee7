#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "harness/measure/ceilings_cpu.hpp"
#include "harness/measure/cpu_loops.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/machine.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::measure;

namespace {

double worst_exponential_error(const CpuLoops& loops) {
  alignas(64) float from[4096];
  alignas(64) float to[4096];
  for (int i = 0; i < 4096; ++i) from[i] = static_cast<float>(i - 2048) / 20.0F;
  loops.exponentials(from, to, 4096);
  double worst = 0;
  for (int i = 0; i < 4096; ++i) {
    worst = std::max(worst, std::abs(to[i] / std::exp2(static_cast<double>(from[i])) - 1));
  }
  return worst;
}

}  // namespace

TEST_CASE("the exponentials of the ceiling are exponentials", "[ceilings]") {
  CHECK(worst_exponential_error(cpu_loops()) < 4e-7);
  CHECK(worst_exponential_error(portable_loops()) < 4e-7);
}

TEST_CASE("the read loop reads everything", "[ceilings]") {
  alignas(64) static float numbers[1024];
  for (const CpuLoops* loops : {&cpu_loops(), &portable_loops()}) {
    std::fill(std::begin(numbers), std::end(numbers), 0.0F);
    const float before = loops->read(numbers, 1024);
    CHECK(before == 0);
    std::fill(std::begin(numbers), std::end(numbers), 1.0F);
    CHECK(loops->read(numbers, 1024) > 0);
  }
}

// How fast is for benchmarks to say: a busy machine or an instrumented build turns any order of
// rates around.
TEST_CASE("ceilings are finite rates, one for each thing that can bind", "[ceilings]") {
  const auto ceilings = cpu_ceilings(1);
  for (const char* name : {"bandwidth_l1_bytes_per_second", "bandwidth_dram_bytes_per_second",
                           "fma_float32_flops_per_second"}) {
    INFO(name);
    CHECK(ceilings.contains(name));
  }
  for (const auto& [name, value] : ceilings.items()) {
    if (name == "isa") continue;
    INFO(name);
    CHECK(value.get<double>() > 0);
    CHECK(std::isfinite(value.get<double>()));
  }
}

TEST_CASE("a rate that was measured in a slow moment gives way to the greater one", "[ceilings]") {
  const nlohmann::json first = {{"l1", 120e9}, {"l2", 273e9}, {"alone", 1.0}};
  const nlohmann::json second = {{"l1", 570e9}, {"l2", 43e9}, {"last", 2.0}};
  const nlohmann::json expected = {{"l1", 570e9}, {"l2", 273e9}, {"alone", 1.0}, {"last", 2.0}};
  CHECK(greater_rates(first, second) == expected);
  CHECK(greater_rates(second, first) == expected);
}

TEST_CASE("the CPU's stopwatch runs, and pinning to all CPUs changes nothing", "[ceilings]") {
  const auto stopwatch = device_cpu()->stopwatch();
  const double before = stopwatch->now();
  CHECK(stopwatch->time([] {}) >= 0);
  CHECK(stopwatch->now() >= before);
  const std::vector<int> cpus = allowed_cpus();
  CHECK(pin_to_cpus(static_cast<int>(cpus.size())) == cpus);
  CHECK(allowed_cpus() == cpus);
}

TEST_CASE("a ladder has a rate at every rung, up to what was allowed", "[ladder]") {
  const auto ladder = memory_ladder(2, 3e6);
  REQUIRE(ladder.size() == 3);
  CHECK(ladder[0].bytes == 131072);
  CHECK(ladder[2].bytes == 2097152);
  for (const attnbench::Rung& rung : ladder) {
    CHECK(rung.bytes_per_second > 0);
    CHECK(std::isfinite(rung.bytes_per_second));
  }
  CHECK(memory_ladder(1, 0).empty());
  CHECK(memory_ladder(1, 4e9).back().bytes == 512 << 20);
}
