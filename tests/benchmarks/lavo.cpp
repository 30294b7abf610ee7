// LAVO's running memory on the CPU, forward and backward, as shares of the FMA peak that the
// context names. Useful operations: 6 r D a token forward where each token has a mean of its own, 4
// r D where a window shares one; 14 r D and 10 r D backward.
#include "attention/kernels/lavo.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "tests/benchmarks/aligned.hpp"
#include "tests/benchmarks/token_scan.hpp"
#include "tests/support/thread_pool.hpp"

namespace {

using namespace attnbench::kernels;
using attnbench::bench::block_of;

/// Arguments: heads, length, bases, window (0 = each token has its own mean), backward.
void lavo(benchmark::State& state) {
  constexpr std::int64_t dim = 64;
  LavoSizes sizes;
  sizes.heads = state.range(0);
  sizes.length = sizes.memory_length = state.range(1);
  sizes.bases = state.range(2);
  sizes.head_dim = dim;
  sizes.scale = 0.125;
  const bool windows = state.range(3) != 0;
  const bool backward = state.range(4) != 0;
  if (windows) {
    sizes.order = MemoryOrder::windows;
    sizes.window = state.range(3);
    sizes.averaged = true;
  }
  std::mt19937 engine(1);
  std::normal_distribution<float> normal;
  const auto drawn = [&](std::int64_t rows) {
    std::vector<float> x(static_cast<std::size_t>(sizes.heads * rows * dim));
    for (float& value : x) value = normal(engine);
    return x;
  };
  auto query = drawn(sizes.length), tokens = drawn(sizes.length), out = drawn(sizes.length);
  auto d_out = drawn(sizes.length), d_query = query, d_tokens = tokens;
  auto bases = drawn(sizes.bases), d_bases = bases;
  const auto rows = [&](auto& x, std::int64_t length) {
    return Rows<float>{x.data(), sizes.heads * length * dim, length * dim, dim};
  };
  const auto read = [&](auto& x, std::int64_t length) {
    return Rows<const float>{x.data(), sizes.heads * length * dim, length * dim, dim};
  };
  LavoArguments<float> arguments;
  arguments.query = read(query, sizes.length);
  arguments.tokens = read(tokens, sizes.length);
  arguments.bases = read(bases, sizes.bases);
  arguments.out = rows(out, sizes.length);
  const LavoGradients<float> gradients{read(d_out, sizes.length), rows(d_query, sizes.length),
                                       rows(d_tokens, sizes.length), d_bases.data()};
  attnbench::test::PoolTeam team(static_cast<int>(std::thread::hardware_concurrency()));
  const std::size_t bytes = backward ? lavo_backward_bytes<float>(sizes, team.size())
                                     : lavo_forward_bytes<float>(sizes, team.size());
  const auto space = block_of<std::byte>(static_cast<std::int64_t>(bytes));
  for (auto _ : state) {
    if (backward) {
      lavo_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      lavo_forward(sizes, arguments, team, space.get(), bytes);
    }
    benchmark::ClobberMemory();
  }
  const double products = windows ? (backward ? 10 : 4) : (backward ? 14 : 6);
  state.counters["useful_flops"] = benchmark::Counter(
      products * static_cast<double>(sizes.heads * sizes.length * sizes.bases * dim),
      benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

/// One token from a carried mean: bytes of the bases, which are all that is large, and their rate
/// as a share of that of reading as much right before and after. Arguments: heads, bases, window.
void lavo_step(benchmark::State& state) {
  constexpr std::int64_t dim = 64;
  LavoSizes sizes;
  sizes.heads = state.range(0);
  sizes.length = sizes.memory_length = 1;
  sizes.bases = state.range(1);
  sizes.head_dim = dim;
  if (state.range(2) != 0) {
    sizes.order = MemoryOrder::windows;
    sizes.window = state.range(2);
    sizes.averaged = true;
  }
  const std::int64_t count = sizes.heads * sizes.bases * dim;
  const auto bases = block_of<float>(count);
  std::fill_n(bases.get(), count, 0.01F);
  std::vector<float> query(static_cast<std::size_t>(sizes.heads * dim), 0.5F);
  auto tokens = query, out = query, sum = query;
  std::vector<float> mean(static_cast<std::size_t>(sizes.heads * sizes.bases));
  std::int64_t remembered = 7, begun = 3;
  const std::int64_t rows = dim;
  LavoArguments<float> arguments;
  arguments.query = {query.data(), sizes.heads * rows, rows, rows};
  arguments.tokens = {tokens.data(), sizes.heads * rows, rows, rows};
  arguments.bases = {bases.get(), count, sizes.bases * dim, dim};
  arguments.out = {out.data(), sizes.heads * rows, rows, rows};
  arguments.carry.mean = mean.data();
  arguments.carry.count = &remembered;
  if (sizes.order == MemoryOrder::windows) {
    arguments.carry.sum = sum.data();
    arguments.carry.sum_count = &begun;
  }
  attnbench::test::PoolTeam team(static_cast<int>(std::thread::hardware_concurrency()));
  const std::size_t bytes = lavo_forward_bytes<float>(sizes, team.size());
  const auto space = block_of<std::byte>(static_cast<std::int64_t>(bytes));
  std::vector<float> sums(static_cast<std::size_t>(team.size()));
  const double moved = 4 * static_cast<double>(count);
  const auto probe = [&] {
    double best = 0;
    for (int i = 0; i < 40; ++i) {
      const auto start = std::chrono::steady_clock::now();
      attnbench::bench::read(bases.get(), count, team, sums.data());
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      best = std::max(best, moved / seconds.count());
    }
    return best;
  };
  const double before = probe();
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    lavo_forward(sizes, arguments, team, space.get(), bytes);
    benchmark::ClobberMemory();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double rate = moved * static_cast<double>(state.iterations()) / seconds.count();
  state.counters["bytes_per_second"] = benchmark::Counter(rate, {}, benchmark::Counter::kIs1000);
  state.counters["of_reading"] = rate / std::max(before, probe());
}

}  // namespace

BENCHMARK(lavo)
    ->ArgNames({"heads", "length", "bases", "window", "backward"})
    ->ArgsProduct({{4}, {2048, 8192}, {64}, {0, 128}, {0, 1}})
    ->Args({1, 8192, 64, 0, 0})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(lavo_step)
    ->ArgNames({"heads", "bases", "window"})
    ->Args({64, 64, 0})
    ->Args({512, 64, 0})
    ->Args({512, 64, 128})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
