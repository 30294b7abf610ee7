// The gated state on the CPU, beside causal products without a gate: what a scalar decay costs, a
// decay for each row, an erasure and a removal key, forward and backward. Useful operations: 4 D Dv
// a token forward whatever the gate, and 12 backward.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/gated_state.hpp"
#include "tests/benchmarks/aligned.hpp"
#include "tests/support/thread_pool.hpp"

namespace {

using namespace attnbench::kernels;
using attnbench::bench::Block;
using attnbench::bench::block_of;
using attnbench::test::PoolTeam;

constexpr std::int64_t gated_heads = 4, gated_dim = 64;

struct GatedArrays {
  std::int64_t length, gates;
  Block<float> query, key, values, decay, beta, removal, erased, out;
  Block<float> d_out, d_query, d_key, d_values, d_beta, d_read, d_removal, d_erased;

  GatedArrays(std::int64_t tokens, std::int64_t gate_count) : length(tokens), gates(gate_count) {
    for (auto* x : {&query, &key, &values, &removal, &erased, &out, &d_out, &d_query, &d_key,
                    &d_values, &d_read, &d_removal, &d_erased}) {
      *x = drawn(gated_dim);
    }
    decay = drawn(std::max<std::int64_t>(gates, 1));
    beta = drawn(1);
    d_beta = drawn(1);
    const std::int64_t tokens_of_all = gated_heads * length;
    for (std::int64_t i = 0; i < tokens_of_all * gated_dim; ++i) {
      key[i] /= 8;  // of norm 1
      removal[i] = key[i];
      erased[i] = key[i] / 2;
    }
    for (std::int64_t i = 0; i < tokens_of_all * std::max<std::int64_t>(gates, 1); ++i) {
      decay[i] = -std::abs(decay[i]) / 16;
    }
    for (std::int64_t i = 0; i < tokens_of_all; ++i) beta[i] = 1 / (1 + std::exp(-beta[i]));
  }
  Block<float> drawn(std::int64_t width) const {
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    const std::int64_t count = gated_heads * length * width;
    Block<float> x = block_of<float>(count);
    for (std::int64_t i = 0; i < count; ++i) x[i] = normal(engine);
    return x;
  }
  template <class E>
  Rows<E> rows(const Block<float>& x, std::int64_t width = gated_dim) const {
    return {x.get(), gated_heads * length * width, length * width, width};
  }
};

template <class Call>
void time_calls(benchmark::State& state, std::int64_t length, bool backward, const Call& call) {
  for (auto _ : state) {
    call();
    benchmark::ClobberMemory();
  }
  const double pairs = static_cast<double>(gated_heads * length * gated_dim * gated_dim);
  state.counters["operations_per_second"] =
      benchmark::Counter((backward ? 12 : 4) * pairs, benchmark::Counter::kIsIterationInvariantRate,
                         benchmark::Counter::kIs1000);
}

void gated_state(benchmark::State& state) {
  const GatedArrays x(state.range(0), state.range(1));
  const bool erases = state.range(2) == 1, removes = state.range(2) == 2;
  const bool backward = state.range(3) != 0;
  const GatedStateSizes sizes{1,       gated_heads, x.length, gated_dim, gated_dim,
                              x.gates, erases,      1,        removes};
  GatedStateArguments<float> arguments;
  arguments.query = x.rows<const float>(x.query);
  arguments.key = x.rows<const float>(x.key);
  arguments.values = x.rows<const float>(x.values);
  arguments.log_decay = x.rows<const float>(x.decay, std::max<std::int64_t>(x.gates, 1));
  arguments.beta = x.rows<const float>(x.beta, 1);
  arguments.removal = x.rows<const float>(x.removal);
  arguments.erased = x.rows<const float>(x.erased);
  arguments.out = x.rows<float>(x.out);
  const GatedStateGradients<float> gradients{
      x.rows<const float>(x.d_out), x.rows<float>(x.d_query),   x.rows<float>(x.d_key),
      x.rows<float>(x.d_values),    x.rows<float>(x.d_beta, 1), x.rows<float>(x.d_read),
      x.rows<float>(x.d_removal),   x.rows<float>(x.d_erased)};
  PoolTeam team(static_cast<int>(std::thread::hardware_concurrency()));
  const std::size_t bytes = backward ? gated_state_backward_bytes<float>(sizes, team.size())
                                     : gated_state_forward_bytes<float>(sizes, team.size());
  const auto space = block_of<std::byte>(static_cast<std::int64_t>(bytes));
  time_calls(state, x.length, backward, [&] {
    if (backward) {
      gated_state_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      gated_state_forward(sizes, arguments, team, space.get(), bytes);
    }
  });
}

/// The same product without any gate, by the kernel of linear attention.
void ungated(benchmark::State& state) {
  const GatedArrays x(state.range(0), 0);
  const bool backward = state.range(1) != 0;
  CausalProductSizes sizes;
  sizes.heads = gated_heads;
  sizes.length = x.length;
  sizes.features = sizes.value_dim = gated_dim;
  CausalProductArguments<float> arguments;
  arguments.query = x.rows<const float>(x.query);
  arguments.key = x.rows<const float>(x.key);
  arguments.values = x.rows<const float>(x.values);
  arguments.out = x.rows<float>(x.out);
  const CausalProductGradients<float> gradients{x.rows<const float>(x.d_out),
                                                x.rows<float>(x.d_query), x.rows<float>(x.d_key),
                                                x.rows<float>(x.d_values)};
  PoolTeam team(static_cast<int>(std::thread::hardware_concurrency()));
  const std::size_t bytes = backward ? causal_product_backward_bytes<float>(sizes, team.size())
                                     : causal_product_forward_bytes<float>(sizes, team.size());
  const auto space = block_of<std::byte>(static_cast<std::int64_t>(bytes));
  time_calls(state, x.length, backward, [&] {
    if (backward) {
      causal_product_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      causal_product_forward(sizes, arguments, team, space.get(), bytes);
    }
  });
}

}  // namespace

BENCHMARK(ungated)
    ->Name("causal_product_ungated")
    ->ArgNames({"length", "backward"})
    ->ArgsProduct({{512, 2048, 8192}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(gated_state)
    ->Name("gated_state")
    ->ArgNames({"length", "gates", "erases", "backward"})
    ->ArgsProduct({{512, 2048, 8192}, {0, 1, gated_dim}, {0, 1}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(gated_state)  // erases=2: by a removal key
    ->Name("gated_state")
    ->ArgNames({"length", "gates", "erases", "backward"})
    ->ArgsProduct({{512, 2048, 8192}, {gated_dim}, {2}, {0, 1}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);
