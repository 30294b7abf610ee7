// The recurrent families on the CPU: forward, backward and a single step, as shares of the FMA peak
// that the context names. Useful operations: 4 L D a token forward, 10 L D backward.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/prefix_pool.hpp"
#include "tests/support/thread_team.hpp"

namespace {

using namespace attnbench::kernels;

struct Free {
  void operator()(void* block) const { std::free(block); }
};
using Block = std::unique_ptr<void, Free>;

Block block_of(std::size_t bytes) { return Block(std::aligned_alloc(64, (bytes + 63) / 64 * 64)); }

/// Query and key [1, heads, length, latents], values [1, heads, length, dim], and their gradients.
struct Arrays {
  std::int64_t heads, length, latents, dim;
  std::vector<float> query, key, values, out, d_out, d_query, d_key, d_values;

  explicit Arrays(const benchmark::State& state)
      : heads(state.range(0)),
        length(state.range(1)),
        latents(state.range(2)),
        dim(state.range(3)) {
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    const auto fill = [&](std::vector<float>& x, std::int64_t width) {
      x.resize(static_cast<std::size_t>(heads * length * width));
      for (float& value : x) value = normal(engine);
    };
    for (auto* x : {&query, &key, &d_query, &d_key}) fill(*x, latents);
    for (auto* x : {&values, &out, &d_out, &d_values}) fill(*x, dim);
  }
  template <class T>
  Rows<T> rows(std::vector<float>& x) const {
    const std::int64_t width = static_cast<std::int64_t>(x.size()) / (heads * length);
    return {x.data(), heads * length * width, length * width, width};
  }
  void count(benchmark::State& state, double factor) const {
    const double flops = factor * static_cast<double>(heads * length * latents * dim);
    state.counters["useful_flops"] = benchmark::Counter(
        flops, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
  }
};

int threads() { return static_cast<int>(std::thread::hardware_concurrency()); }

template <class Sizes>
Sizes sizes_of(const Arrays& x) {
  Sizes sizes;
  sizes.heads = x.heads;
  sizes.length = x.length;
  sizes.value_dim = x.dim;
  return sizes;
}

void prefix_pool(benchmark::State& state) {
  Arrays x(state);
  const bool backward = state.range(4) != 0;
  auto sizes = sizes_of<PrefixPoolSizes>(x);
  sizes.latents = x.latents;
  PrefixPoolArguments<float> arguments;
  arguments.query = x.rows<const float>(x.query);
  arguments.scores = x.rows<const float>(x.key);
  arguments.values = x.rows<const float>(x.values);
  arguments.out = x.rows<float>(x.out);
  const PrefixPoolGradients<float> gradients{x.rows<const float>(x.d_out), x.rows<float>(x.d_query),
                                             x.rows<float>(x.d_key), x.rows<float>(x.d_values)};
  attnbench::test::StdTeam team(threads());
  const std::size_t bytes = backward ? prefix_pool_backward_bytes<float>(sizes, team.size())
                                     : prefix_pool_forward_bytes<float>(sizes, team.size());
  const Block space = block_of(bytes);
  for (auto _ : state) {
    if (backward) {
      prefix_pool_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      prefix_pool_forward(sizes, arguments, team, space.get(), bytes);
    }
    benchmark::ClobberMemory();
  }
  x.count(state, backward ? 10 : 4);
}

void causal_product(benchmark::State& state) {
  Arrays x(state);
  const bool backward = state.range(4) != 0;
  auto sizes = sizes_of<CausalProductSizes>(x);
  sizes.features = x.latents;
  sizes.feature = ProductFeature::elu_plus_one;
  sizes.normalised = true;
  sizes.epsilon = 1e-6;
  CausalProductArguments<float> arguments;
  arguments.query = x.rows<const float>(x.query);
  arguments.key = x.rows<const float>(x.key);
  arguments.values = x.rows<const float>(x.values);
  arguments.out = x.rows<float>(x.out);
  const CausalProductGradients<float> gradients{x.rows<const float>(x.d_out),
                                                x.rows<float>(x.d_query), x.rows<float>(x.d_key),
                                                x.rows<float>(x.d_values)};
  attnbench::test::StdTeam team(threads());
  const std::size_t bytes = backward ? causal_product_backward_bytes<float>(sizes, team.size())
                                     : causal_product_forward_bytes<float>(sizes, team.size());
  const Block space = block_of(bytes);
  for (auto _ : state) {
    if (backward) {
      causal_product_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      causal_product_forward(sizes, arguments, team, space.get(), bytes);
    }
    benchmark::ClobberMemory();
  }
  x.count(state, backward ? 10 : 4);
}

/// One token from a carried memory: bytes of the memory read and written, over time.
void prefix_pool_step(benchmark::State& state) {
  Arrays x(state);
  auto sizes = sizes_of<PrefixPoolSizes>(x);
  sizes.latents = x.latents;
  std::vector<float> maximum(static_cast<std::size_t>(x.heads * x.latents), 0.0F);
  std::vector<float> normaliser(maximum.size(), 1.0F);
  std::vector<float> sum(maximum.size() * static_cast<std::size_t>(x.dim), 0.0F);
  PrefixPoolArguments<float> arguments;
  arguments.query = x.rows<const float>(x.query);
  arguments.scores = x.rows<const float>(x.key);
  arguments.values = x.rows<const float>(x.values);
  arguments.out = x.rows<float>(x.out);
  arguments.carry = {maximum.data(), normaliser.data(), sum.data()};
  attnbench::test::StdTeam team(threads());
  const std::size_t bytes = prefix_pool_forward_bytes<float>(sizes, team.size());
  const Block space = block_of(bytes);
  for (auto _ : state) {
    prefix_pool_forward(sizes, arguments, team, space.get(), bytes);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(sum.size()) * 8);
}

}  // namespace

BENCHMARK(prefix_pool)
    ->ArgNames({"heads", "length", "latents", "value_dim", "backward"})
    ->ArgsProduct({{4}, {2048, 8192}, {64, 128, 256, 512}, {64}, {0, 1}})
    ->Args({1, 8192, 64, 64, 0})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(causal_product)
    ->ArgNames({"heads", "length", "features", "value_dim", "backward"})
    ->ArgsProduct({{4}, {2048, 8192}, {64, 256}, {64}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(prefix_pool_step)
    ->ArgNames({"heads", "length", "latents", "value_dim"})
    ->Args({128, 1, 128, 64})
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);
