// LAVO's running memory on the CPU, forward and backward, as shares of the FMA peak that the
// context names. Useful operations: 6 r D a token forward where each token has a mean of its own, 4
// r D where a window shares one; 14 r D and 10 r D backward.
#include "attention/kernels/running_memory.hpp"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/thread_team.hpp"

namespace {

using namespace attnbench::kernels;

struct Free {
  void operator()(void* block) const { std::free(block); }
};

/// Arguments: heads, length, bases, window (0 = each token has its own mean), backward.
void running_memory(benchmark::State& state) {
  constexpr std::int64_t dim = 64;
  RunningMemorySizes sizes;
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
  RunningMemoryArguments<float> arguments;
  arguments.query = read(query, sizes.length);
  arguments.tokens = read(tokens, sizes.length);
  arguments.bases = read(bases, sizes.bases);
  arguments.out = rows(out, sizes.length);
  const RunningMemoryGradients<float> gradients{read(d_out, sizes.length),
                                                rows(d_query, sizes.length),
                                                rows(d_tokens, sizes.length), d_bases.data()};
  attnbench::test::StdTeam team(static_cast<int>(std::thread::hardware_concurrency()));
  const std::size_t bytes = backward ? running_memory_backward_bytes<float>(sizes, team.size())
                                     : running_memory_forward_bytes<float>(sizes, team.size());
  const std::unique_ptr<void, Free> space(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  for (auto _ : state) {
    if (backward) {
      running_memory_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      running_memory_forward(sizes, arguments, team, space.get(), bytes);
    }
    benchmark::ClobberMemory();
  }
  const double products = windows ? (backward ? 10 : 4) : (backward ? 14 : 6);
  state.counters["useful_flops"] = benchmark::Counter(
      products * static_cast<double>(sizes.heads * sizes.length * sizes.bases * dim),
      benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

}  // namespace

BENCHMARK(running_memory)
    ->ArgNames({"heads", "length", "bases", "window", "backward"})
    ->ArgsProduct({{4}, {2048, 8192}, {64}, {0, 128}, {0, 1}})
    ->Args({1, 8192, 64, 0, 0})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
