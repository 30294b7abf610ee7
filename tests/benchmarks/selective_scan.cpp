// The selective scan on the CPU, beside gated states of as many numbers. Useful operations: 6 a
// number of the state and token forward, of which one is an exponential's argument, and 18
// backward.
#include "attention/kernels/selective_scan.hpp"

#include <benchmark/benchmark.h>

#include <cmath>
#include <random>
#include <thread>

#include "tests/benchmarks/aligned.hpp"
#include "tests/support/thread_pool.hpp"

namespace {

using namespace attnbench::kernels;
using attnbench::bench::Block;
using attnbench::bench::block_of;
using attnbench::test::PoolTeam;

constexpr std::int64_t selective_heads = 4, selective_width = 64;

/// [1, heads, length, width], normal numbers or, where said, their sizes in a tenth.
Block<float> selective_numbers(std::int64_t count, bool of_steps = false) {
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  Block<float> x = block_of<float>(count);
  for (std::int64_t i = 0; i < count; ++i) {
    x[static_cast<std::size_t>(i)] = of_steps ? std::abs(normal(engine)) / 10 : normal(engine);
  }
  return x;
}

/// One group: all heads share inputs and reads.
void selective_scan(benchmark::State& state) {
  const std::int64_t length = state.range(0), rows = state.range(1);
  const bool backward = state.range(2) != 0;
  const SelectiveScanSizes sizes{1, selective_heads, 1, length, rows, selective_width};
  const std::int64_t own = selective_heads * length * selective_width, shared = length * rows;
  const std::int64_t of_rates = selective_heads * rows * selective_width;
  const auto step = selective_numbers(own, true), values = selective_numbers(own);
  const auto input = selective_numbers(shared), read = selective_numbers(shared);
  const auto rate = selective_numbers(of_rates), out = selective_numbers(own);
  const auto d_out = selective_numbers(own), d_step = selective_numbers(own);
  const auto d_values = selective_numbers(own), d_input = selective_numbers(shared);
  const auto d_read = selective_numbers(shared), d_rate = selective_numbers(of_rates);
  for (std::int64_t i = 0; i < of_rates; ++i) {
    rate[static_cast<std::size_t>(i)] = -std::abs(rate[static_cast<std::size_t>(i)]);
  }
  const auto of_heads = [&](const Block<float>& x) {
    return Rows<float>{x.get(), own, length * selective_width, selective_width};
  };
  const auto of_group = [&](const Block<float>& x) {
    return Rows<float>{x.get(), shared, shared, rows};
  };
  const auto given = [](const Rows<float>& x) {
    return Rows<const float>{x.data, x.batch_stride, x.head_stride, x.row_stride};
  };
  SelectiveScanArguments<float> arguments;
  arguments.step = given(of_heads(step));
  arguments.values = given(of_heads(values));
  arguments.input = given(of_group(input));
  arguments.read = given(of_group(read));
  arguments.rate = rate.get();
  arguments.out = of_heads(out);
  const SelectiveScanGradients<float> gradients{given(of_heads(d_out)), of_heads(d_step),
                                                of_heads(d_values),     of_group(d_input),
                                                of_group(d_read),       d_rate.get()};
  PoolTeam team(static_cast<int>(std::thread::hardware_concurrency()));
  const std::size_t bytes = backward ? selective_scan_backward_bytes<float>(sizes, team.size())
                                     : selective_scan_forward_bytes<float>(sizes, team.size());
  const auto space = block_of<std::byte>(static_cast<std::int64_t>(bytes));
  for (auto _ : state) {
    if (backward) {
      selective_scan_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      selective_scan_forward(sizes, arguments, team, space.get(), bytes);
    }
    benchmark::ClobberMemory();
  }
  state.counters["operations_per_second"] = benchmark::Counter(
      (backward ? 18.0 : 6.0) * static_cast<double>(own * rows),
      benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

}  // namespace

BENCHMARK(selective_scan)
    ->Name("selective_scan")
    ->ArgNames({"length", "rows", "backward"})
    ->ArgsProduct({{512, 2048, 8192}, {16}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
