// Flash-style softmax attention on the CPU: forward and backward, full and causal.
#include "attention/kernels/softmax.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
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

/// One call's arrays: [1, heads, length, dim] each.
struct Arrays {
  static constexpr std::int64_t heads = 4;
  std::int64_t length, dim;
  std::vector<float> q, k, v, out, d_out, dq, dk, dv, lse;

  Arrays(std::int64_t tokens, std::int64_t head_dim) : length(tokens), dim(head_dim) {
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    for (auto* array : {&q, &k, &v, &out, &d_out, &dq, &dk, &dv}) {
      array->resize(static_cast<std::size_t>(heads * length * dim));
      for (float& value : *array) value = normal(engine);
    }
    lse.resize(static_cast<std::size_t>(heads * length));
  }
  template <class T>
  Rows<T> rows(std::vector<float>& array) const {
    return {array.data(), heads * length * dim, length * dim, dim};
  }
  SoftmaxSizes sizes(bool causal) const {
    SoftmaxSizes sizes;
    sizes.heads = sizes.kv_heads = heads;
    sizes.length = sizes.key_length = length;
    sizes.head_dim = sizes.value_dim = dim;
    sizes.right = causal ? 0 : SoftmaxSizes::far;
    sizes.scale = 1 / std::sqrt(static_cast<double>(dim));
    return sizes;
  }
};

/// Arguments: length, head dimension, causal, backward too.
void softmax(benchmark::State& state) {
  Arrays arrays(state.range(0), state.range(1));
  const bool causal = state.range(2) != 0;
  const bool backward = state.range(3) != 0;
  const SoftmaxSizes sizes = arrays.sizes(causal);
  attnbench::test::StdTeam team(static_cast<int>(std::thread::hardware_concurrency()));
  const SoftmaxArguments<float> arguments{arrays.rows<const float>(arrays.q),
                                          arrays.rows<const float>(arrays.k),
                                          arrays.rows<const float>(arrays.v),
                                          nullptr,
                                          0,
                                          arrays.rows<float>(arrays.out),
                                          arrays.lse.data()};
  const SoftmaxGradients<float> gradients{
      arrays.rows<const float>(arrays.d_out), arrays.rows<float>(arrays.dq),
      arrays.rows<float>(arrays.dk), arrays.rows<float>(arrays.dv)};
  const std::size_t bytes = std::max(softmax_forward_bytes<float>(sizes, team.size()),
                                     softmax_backward_bytes<float>(sizes, team.size()));
  const std::unique_ptr<void, Free> workspace(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  softmax_forward(sizes, arguments, team, workspace.get(), bytes);  // lse for the backward pass
  for (auto _ : state) {
    if (backward) {
      softmax_backward(sizes, arguments, gradients, team, workspace.get(), bytes);
    } else {
      softmax_forward(sizes, arguments, team, workspace.get(), bytes);
    }
    benchmark::ClobberMemory();
  }
  const auto length = static_cast<double>(arrays.length);
  const double pairs = causal ? length * (length + 1) / 2 : length * length;
  const double flops =
      (backward ? 10.0 : 4.0) * Arrays::heads * pairs * static_cast<double>(arrays.dim);
  state.counters["useful_flops"] = benchmark::Counter(
      flops, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000);
}

}  // namespace

BENCHMARK(softmax)
    ->ArgNames({"length", "head_dim", "causal", "backward"})
    ->ArgsProduct({{512, 2048}, {64, 128}, {0, 1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
