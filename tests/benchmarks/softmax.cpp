// Flash-style softmax attention on the CPU: rates as shares of the peak that is measured right
// before and after, so that both see the same clock. Useful operations: 4 D a pair of tokens that
// see each other forward, 10 D backward, whatever is computed beside them.
#include "attention/kernels/softmax.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

#include "tests/benchmarks/aligned.hpp"
#include "tests/benchmarks/floor.hpp"
#include "tests/support/thread_pool.hpp"

namespace {

using namespace attnbench::kernels;
using attnbench::bench::Arithmetic;
using attnbench::bench::Block;
using attnbench::bench::block_of;
using attnbench::bench::Floor;
using attnbench::bench::Unit;

/// One call's arrays, 64-byte aligned as LibTorch's are: [1, heads, length, dim] each.
template <class T>
struct Arrays {
  SoftmaxSizes sizes;
  Block<T> q, k, v, out, d_out, dq, dk, dv;
  Block<float> lse;

  explicit Arrays(const SoftmaxSizes& s) : sizes(s) {
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    const auto fill = [&](Block<T>& x, std::int64_t tokens) {
      const std::int64_t count = s.heads * tokens * s.head_dim;
      x = block_of<T>(count);
      for (std::int64_t i = 0; i < count; ++i) narrow(normal(engine), x[i]);
    };
    for (auto* x : {&q, &out, &d_out, &dq}) fill(*x, s.length);
    for (auto* x : {&k, &v, &dk, &dv}) fill(*x, s.key_length);
    lse = block_of<float>(s.heads * s.length);
  }
  template <class E>
  Rows<E> rows(const Block<T>& x, std::int64_t tokens) const {
    return {x.get(), sizes.heads * tokens * sizes.head_dim, tokens * sizes.head_dim,
            sizes.head_dim};
  }
  SoftmaxArguments<T> arguments() const {
    SoftmaxArguments<T> a;
    a.q = rows<const T>(q, sizes.length);
    a.k = rows<const T>(k, sizes.key_length);
    a.v = rows<const T>(v, sizes.key_length);
    a.out = rows<T>(out, sizes.length);
    a.lse = lse.get();
    return a;
  }
  SoftmaxGradients<T> gradients() const {
    SoftmaxGradients<T> g;
    g.d_out = rows<const T>(d_out, sizes.length);
    g.dq = rows<T>(dq, sizes.length);
    g.dk = rows<T>(dk, sizes.key_length);
    g.dv = rows<T>(dv, sizes.key_length);
    return g;
  }
};

double pairs_of(const SoftmaxSizes& sizes) {
  double pairs = 0;
  for (std::int64_t t = 0; t < sizes.length; ++t) {
    const std::int64_t seen = sizes.last_key(t) + 1 - sizes.first_key(t);
    pairs += static_cast<double>(std::max<std::int64_t>(seen, 0));
  }
  return pairs;
}

/// Counters: useful_flops, it as a share of each peak of this machine, the floor, and the share of
/// the time that the exponentials would take alone.
template <class T>
void run(benchmark::State& state, const SoftmaxSizes& sizes, bool backward, int threads) {
  const Arrays<T> arrays(sizes);
  attnbench::test::PoolTeam team(threads);
  const std::size_t bytes =
      std::max(softmax_forward_bytes<T>(sizes, threads), softmax_backward_bytes<T>(sizes, threads));
  const auto workspace = block_of<std::byte>(static_cast<std::int64_t>(bytes));
  const auto arguments = arrays.arguments();
  const auto gradients = arrays.gradients();
  softmax_forward(sizes, arguments, team, workspace.get(), bytes);  // lse for the backward pass
  const double heads = static_cast<double>(sizes.heads);
  const double pairs = heads * pairs_of(sizes);
  const double flops = (backward ? 10.0 : 4.0) * pairs * static_cast<double>(sizes.head_dim);
  // Forward q and out, k and v; backward q, out, d_out and dq, k, v, dk and dv.
  const double rows = (backward ? 4.0 : 2.0) * static_cast<double>(sizes.length + sizes.key_length);
  const double moved = heads * rows * static_cast<double>(sizes.head_dim) * sizeof(T);
  constexpr bool wide = std::is_same_v<T, float>;
  Floor floor({flops, moved, pairs}, wide ? Arithmetic::float32 : Arithmetic::bfloat16);
  floor.look(team);
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    if (backward) {
      softmax_backward(sizes, arguments, gradients, team, workspace.get(), bytes);
    } else {
      softmax_forward(sizes, arguments, team, workspace.get(), bytes);
    }
    benchmark::ClobberMemory();
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  floor.look(team);
  const double seconds = passed.count() / static_cast<double>(state.iterations());
  const double rate = flops / seconds;
  state.counters["useful_flops"] = benchmark::Counter(rate, {}, benchmark::Counter::kIs1000);
  floor.report(state, seconds);
  state.counters["of_exponentials"] = floor.exponential_seconds() / seconds;
  const auto share_of = [&](const char* name, Unit unit) {
    if (const double peak = floor.rate(unit)) state.counters[name] = rate / peak;
  };
  share_of("of_fma_float32", Unit::fma_float32);
  share_of("of_product_float32", Unit::product_float32);
  share_of("of_dot_bfloat16", Unit::dot_bfloat16);
  share_of("of_tile_bfloat16", Unit::tile_bfloat16);
}

int all_threads() { return static_cast<int>(std::thread::hardware_concurrency()); }

SoftmaxSizes sizes_of(std::int64_t heads, std::int64_t length, std::int64_t dim) {
  SoftmaxSizes sizes;
  sizes.heads = sizes.kv_heads = heads;
  sizes.length = sizes.key_length = length;
  sizes.head_dim = sizes.value_dim = dim;
  sizes.scale = 1 / std::sqrt(static_cast<double>(dim));
  return sizes;
}

template <class T>
void softmax(benchmark::State& state) {
  SoftmaxSizes sizes = sizes_of(4, state.range(0), state.range(1));
  if (state.range(2) != 0) sizes.right = 0;
  run<T>(state, sizes, state.range(3) != 0, all_threads());
}

/// One head on one thread and on all: how well a sequence is shared.
void softmax_one_head(benchmark::State& state) {
  SoftmaxSizes sizes = sizes_of(1, state.range(0), 64);
  if (state.range(1) != 0) sizes.right = 0;
  run<float>(state, sizes, state.range(2) != 0,
             state.range(3) == 0 ? all_threads() : static_cast<int>(state.range(3)));
}

template <class T>
void softmax_window(benchmark::State& state) {
  SoftmaxSizes sizes = sizes_of(4, 8192, 64);
  sizes.left = state.range(0);
  sizes.right = state.range(1);
  run<T>(state, sizes, state.range(2) != 0, all_threads());
}

/// A few new tokens against many keys, which are read once: bytes of keys and values over time.
template <class T>
void softmax_decode(benchmark::State& state) {
  SoftmaxSizes sizes = sizes_of(state.range(0), state.range(1), 64);
  sizes.key_length = state.range(2);
  sizes.offset = sizes.key_length - sizes.length;
  sizes.right = 0;
  run<T>(state, sizes, false, state.range(3) == 0 ? all_threads() : 1);
  state.SetBytesProcessed(state.iterations() * sizes.heads * sizes.key_length * 128 *
                          static_cast<std::int64_t>(sizeof(T)));
}

}  // namespace

BENCHMARK_TEMPLATE(softmax, float)
    ->ArgNames({"length", "head_dim", "causal", "backward"})
    ->ArgsProduct({{512, 2048, 8192}, {64, 128}, {0, 1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(softmax, BFloat16)
    ->ArgNames({"length", "head_dim", "causal", "backward"})
    ->ArgsProduct({{512, 2048, 8192}, {64, 128}, {0, 1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(softmax_one_head)
    ->ArgNames({"length", "causal", "backward", "threads"})
    ->ArgsProduct({{2048}, {0, 1}, {0, 1}, {1, 0}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(softmax_window, float)
    ->ArgNames({"left", "right", "backward"})
    ->ArgsProduct({{127, 511}, {0, 127}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(softmax_window, BFloat16)
    ->ArgNames({"left", "right", "backward"})
    ->ArgsProduct({{127, 511}, {0, 127}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK_TEMPLATE(softmax_decode, float)
    ->ArgNames({"heads", "length", "keys", "serial"})
    ->ArgsProduct({{1, 8}, {1, 4, 16}, {8192}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
BENCHMARK_TEMPLATE(softmax_decode, BFloat16)
    ->ArgNames({"heads", "length", "keys", "serial"})
    ->ArgsProduct({{1, 8}, {1, 4, 16}, {8192}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
