// The recurrent families on the CPU: forward, backward and a single step, beside a token scan and
// shares of what the machine can do right before and after. Useful operations: 4 L D a token
// forward, 10 L D backward, whatever is computed beside them. Run it as the worker is run, with
// GLIBC_TUNABLES=glibc.malloc.hugetlb=1: where huge pages are lent on request alone, small ones
// cost up to 8 % of a forward pass over 256 latents.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/prefix_pool.hpp"
#include "attention/kernels/whole_pool.hpp"
#include "tests/benchmarks/aligned.hpp"
#include "tests/benchmarks/peak.hpp"
#include "tests/benchmarks/token_scan.hpp"
#include "tests/support/thread_pool.hpp"

namespace {

using namespace attnbench::kernels;
using attnbench::bench::Block;
using attnbench::bench::block_of;
using attnbench::bench::Unit;
using attnbench::test::PoolTeam;

int all_threads() { return static_cast<int>(std::thread::hardware_concurrency()); }

/// Query and key [1, heads, length, latents], values [1, heads, length, dim], and their gradients,
/// 64-byte aligned as LibTorch's are.
template <class T>
struct Arrays {
  std::int64_t heads, length, latents, dim;
  Block<T> query, key, values, out, d_out, d_query, d_key, d_values;

  explicit Arrays(const benchmark::State& state)
      : heads(state.range(0)),
        length(state.range(1)),
        latents(state.range(2)),
        dim(state.range(3)) {
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    const auto fill = [&](Block<T>& x, std::int64_t width) {
      const std::int64_t count = heads * length * width;
      x = block_of<T>(count);
      for (std::int64_t i = 0; i < count; ++i) narrow(normal(engine), x[i]);
    };
    for (auto* x : {&query, &key, &d_query, &d_key}) fill(*x, latents);
    for (auto* x : {&values, &out, &d_out, &d_values}) fill(*x, dim);
  }
  template <class E>
  Rows<E> rows(const Block<T>& x, std::int64_t width) const {
    return {x.get(), heads * length * width, length * width, width};
  }
  template <class Sizes>
  Sizes sizes() const {
    Sizes sizes;
    sizes.heads = heads;
    sizes.length = length;
    sizes.value_dim = dim;
    return sizes;
  }
};

template <class T>
struct Pool {
  PrefixPoolSizes sizes;
  PrefixPoolArguments<T> arguments;
  PrefixPoolGradients<T> gradients;

  explicit Pool(const Arrays<T>& x) : sizes(x.template sizes<PrefixPoolSizes>()) {
    sizes.latents = x.latents;
    arguments.query = x.template rows<const T>(x.query, x.latents);
    arguments.scores = x.template rows<const T>(x.key, x.latents);
    arguments.values = x.template rows<const T>(x.values, x.dim);
    arguments.out = x.template rows<T>(x.out, x.dim);
    gradients = {x.template rows<const T>(x.d_out, x.dim), x.template rows<T>(x.d_query, x.latents),
                 x.template rows<T>(x.d_key, x.latents), x.template rows<T>(x.d_values, x.dim)};
  }
  std::size_t bytes(int threads) const {
    return std::max(prefix_pool_forward_bytes<T>(sizes, threads),
                    prefix_pool_backward_bytes<T>(sizes, threads));
  }
  /// What the past came down to: a memory, and two numbers for each of its rows.
  void continue_from(float* memory, float* first, float* second) {
    arguments.carry = {first, second, memory};
  }
  void run(bool backward, ThreadTeam& team, void* space, std::size_t bytes) const {
    if (backward) {
      prefix_pool_backward(sizes, arguments, gradients, team, space, bytes);
    } else {
      prefix_pool_forward(sizes, arguments, team, space, bytes);
    }
  }
};

/// The pool without an order: 4 L D a token forward, 8 L D backward beside computing that anew.
template <class T>
struct WholePool : Pool<T> {
  WholePoolSizes whole;

  explicit WholePool(const Arrays<T>& x) : Pool<T>(x) {
    static_cast<PrefixPoolSizes&>(whole) = this->sizes;
    whole.key_length = x.length;
  }
  std::size_t bytes(int threads) const {
    return std::max(whole_pool_forward_bytes<T>(whole, threads),
                    whole_pool_backward_bytes<T>(whole, threads));
  }
  void run(bool backward, ThreadTeam& team, void* space, std::size_t bytes) const {
    const WholePoolArguments<T> given{this->arguments, {}};
    if (backward) {
      whole_pool_backward(whole, given, this->gradients, team, space, bytes);
    } else {
      whole_pool_forward(whole, given, team, space, bytes);
    }
  }
};

template <class T>
struct Linear {
  CausalProductSizes sizes;
  CausalProductArguments<T> arguments;
  CausalProductGradients<T> gradients;

  explicit Linear(const Arrays<T>& x) : sizes(x.template sizes<CausalProductSizes>()) {
    sizes.features = x.latents;
    sizes.feature = ProductFeature::elu_plus_one;
    sizes.normalised = true;
    sizes.epsilon = 1e-6;
    arguments.query = x.template rows<const T>(x.query, x.latents);
    arguments.key = x.template rows<const T>(x.key, x.latents);
    arguments.values = x.template rows<const T>(x.values, x.dim);
    arguments.out = x.template rows<T>(x.out, x.dim);
    gradients = {x.template rows<const T>(x.d_out, x.dim), x.template rows<T>(x.d_query, x.latents),
                 x.template rows<T>(x.d_key, x.latents), x.template rows<T>(x.d_values, x.dim)};
  }
  std::size_t bytes(int threads) const {
    return std::max(causal_product_forward_bytes<T>(sizes, threads),
                    causal_product_backward_bytes<T>(sizes, threads));
  }
  void continue_from(float* memory, float* first, float*) {
    arguments.memory = memory;
    arguments.total = first;
  }
  void run(bool backward, ThreadTeam& team, void* space, std::size_t bytes) const {
    if (backward) {
      causal_product_backward(sizes, arguments, gradients, team, space, bytes);
    } else {
      causal_product_forward(sizes, arguments, team, space, bytes);
    }
  }
};

/// Times `body` and counts its useful operations, also as shares of the FMA peak and of what
/// remains of it where operands are read.
template <class Body>
void measure(benchmark::State& state, ThreadTeam& team, double flops, const Body& body) {
  body();
  const auto peak = [&](Unit unit) { return attnbench::bench::peak(unit, team); };
  const double fma = peak(Unit::fma_float32);
  const double product = peak(Unit::product_float32);
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    body();
    benchmark::ClobberMemory();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double rate = flops * static_cast<double>(state.iterations()) / seconds.count();
  state.counters["useful_flops"] = benchmark::Counter(rate, {}, benchmark::Counter::kIs1000);
  state.counters["of_fma_float32"] = rate / std::max(fma, peak(Unit::fma_float32));
  state.counters["of_product_float32"] = rate / std::max(product, peak(Unit::product_float32));
}

template <template <class> class Family, class T>
void family(benchmark::State& state) {
  const Arrays<T> x(state);
  const Family<T> call(x);
  const bool backward = state.range(4) != 0;
  PoolTeam team(all_threads());
  const std::size_t bytes = call.bytes(team.size());
  const auto space = block_of<std::byte>(static_cast<std::int64_t>(bytes));
  const auto pairs = static_cast<double>(x.heads * x.length * x.latents * x.dim);
  measure(state, team, (backward ? 10 : 4) * pairs,
          [&] { call.run(backward, team, space.get(), bytes); });
}

/// The same without the kernels: see token_scan.hpp.
void latte_token_scan(benchmark::State& state) {
  const Arrays<float> x(state);
  const Pool<float> call(x);
  PoolTeam team(all_threads());
  const auto room = block_of<float>(x.latents * (x.dim + 5) * team.size());
  measure(state, team, 4 * static_cast<double>(x.heads * x.length * x.latents * x.dim),
          [&] { attnbench::bench::token_scan(call.sizes, call.arguments, team, room.get()); });
}

/// One token from a carried memory: bytes of the memory read and written, and their rate as a share
/// of that of a plain pass over as much memory right before and after.
template <template <class> class Family>
void step(benchmark::State& state) {
  const Arrays<float> x(state);
  Family<float> call(x);
  const std::int64_t latents = x.heads * x.latents;
  const auto first = block_of<float>(latents);
  const auto second = block_of<float>(latents);
  const auto memory = block_of<float>(latents * x.dim);
  std::fill_n(first.get(), latents, 0.0F);
  std::fill_n(second.get(), latents, 1.0F);
  std::fill_n(memory.get(), latents * x.dim, 0.0F);
  call.continue_from(memory.get(), first.get(), second.get());
  PoolTeam team(all_threads());
  const std::size_t bytes = call.bytes(team.size());
  const auto space = block_of<std::byte>(static_cast<std::int64_t>(bytes));
  const double moved = 8 * static_cast<double>(latents * x.dim);
  const auto other = block_of<float>(latents * x.dim);
  std::fill_n(other.get(), latents * x.dim, 0.0F);
  const auto probe = [&] {
    double best = 0;
    for (int i = 0; i < 40; ++i) {
      const auto start = std::chrono::steady_clock::now();
      attnbench::bench::stream(other.get(), latents * x.dim, team);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      best = std::max(best, moved / seconds.count());
    }
    return best;
  };
  const double before = probe();
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    call.run(false, team, space.get(), bytes);
    benchmark::ClobberMemory();
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  const double rate = moved * static_cast<double>(state.iterations()) / seconds.count();
  state.counters["bytes_per_second"] = benchmark::Counter(rate, {}, benchmark::Counter::kIs1000);
  state.counters["of_stream"] = rate / std::max(before, probe());
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"heads", "length", "latents", "value_dim", "backward"})
      ->ArgsProduct({{4}, {512, 2048, 8192}, {64, 128, 256, 512}, {64}, {0, 1}})
      ->Args({1, 8192, 64, 64, 0})
      ->Args({1, 8192, 64, 64, 1})
      ->Args({4, 2048, 128, 128, 0})
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

void steps(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"heads", "length", "latents", "value_dim"})
      ->Args({32, 1, 128, 64})
      ->Args({128, 1, 128, 64})
      ->Args({512, 1, 128, 64})
      ->Args({512, 1, 128, 128})
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

BENCHMARK(family<Pool, float>)->Name("latte")->Apply(sizes);
BENCHMARK(family<WholePool, float>)->Name("latte_bidirectional")->Apply(sizes);
BENCHMARK(latte_token_scan)
    ->ArgNames({"heads", "length", "latents", "value_dim"})
    ->ArgsProduct({{4}, {512, 2048, 8192}, {64, 128, 256, 512}, {64}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(family<Linear, float>)->Name("linear")->Apply(sizes);
BENCHMARK(family<Pool, BFloat16>)->Name("latte_bfloat16")->Apply(sizes);
BENCHMARK(step<Pool>)->Name("latte_step")->Apply(steps);
BENCHMARK(step<Linear>)->Name("linear_step")->Apply(steps);
