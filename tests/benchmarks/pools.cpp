// The families without an order on the CPU, and LAVO, forward, in float32, as shares of their own
// floors.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <functional>
#include <random>
#include <thread>

#include "attention/kernels/lavo.hpp"
#include "attention/kernels/sequence_projection.hpp"
#include "attention/kernels/softmax_pool.hpp"
#include "attention/kernels/whole_pool.hpp"
#include "tests/benchmarks/aligned.hpp"
#include "tests/benchmarks/floor.hpp"
#include "tests/support/thread_pool.hpp"

namespace {

using namespace attnbench::kernels;
using attnbench::test::PoolTeam;

constexpr std::int64_t heads = 4, dim = 64;

using Bytes = attnbench::bench::Block<std::byte>;

Bytes bytes_of(std::size_t bytes) {
  return attnbench::bench::block_of<std::byte>(static_cast<std::int64_t>(bytes));
}

/// Normal numbers [1, heads, rows, width], 64-byte aligned as LibTorch's are.
struct Array {
  std::int64_t rows, width;
  attnbench::bench::Block<float> room;

  Array(std::int64_t count, std::int64_t columns)
      : rows(count), width(columns), room(attnbench::bench::block_of<float>(heads * rows * width)) {
    std::mt19937 engine(1);
    std::normal_distribution<float> normal;
    for (std::int64_t i = 0; i < heads * rows * width; ++i) data()[i] = normal(engine);
  }
  float* data() const { return room.get(); }
  operator Rows<const float>() const { return {data(), heads * rows * width, rows * width, width}; }
  operator Rows<float>() const { return {data(), heads * rows * width, rows * width, width}; }
};

/// What the definition needs, in numbers of float32.
struct NeededNumbers {
  double operations = 0, numbers = 0, exponentials = 0;
};

/// One kernel's call, with a workspace.
using Call = std::function<void(ThreadTeam&)>;

void measure(benchmark::State& state, const NeededNumbers& needed, const Call& call) {
  PoolTeam team(static_cast<int>(std::thread::hardware_concurrency()));
  attnbench::bench::Floor floor({needed.operations, 4 * needed.numbers, needed.exponentials},
                                attnbench::bench::Arithmetic::float32);
  call(team);
  floor.look(team);
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    call(team);
    benchmark::ClobberMemory();
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
  floor.look(team);
  const double seconds = passed.count() / static_cast<double>(state.iterations());
  floor.report(state, seconds);
  state.counters["of_fma_float32"] =
      needed.operations / floor.rate(attnbench::bench::Unit::fma_float32) / seconds;
}

double real(std::int64_t count) { return static_cast<double>(count); }

/// The whole pool of queries and keys [length, width], which are logits where nothing else is said.
struct Pool {
  Array query, keys, values, out;
  WholePoolSizes sizes;
  WholePoolArguments<float> arguments;

  Pool(std::int64_t length, std::int64_t width, std::int64_t latents)
      : query(length, width), keys(length, width), values(length, dim), out(length, dim) {
    sizes.heads = heads;
    sizes.length = sizes.key_length = length;
    sizes.latents = latents;
    sizes.value_dim = dim;
    arguments.query = query;
    arguments.scores = keys;
    arguments.values = values;
    arguments.out = out;
  }
  void time(benchmark::State& state, const NeededNumbers& needed) const {
    const Bytes space = bytes_of(whole_pool_forward_bytes<float>(sizes, 64));
    measure(state, needed, [&](ThreadTeam& team) {
      whole_pool_forward(sizes, arguments, team, space.get(),
                         whole_pool_forward_bytes<float>(sizes, team.size()));
    });
  }
};

/// Latte: weights of queries and of keys from logits of L latents, two products.
void latte(benchmark::State& state) {
  const std::int64_t length = state.range(0), latents = state.range(1);
  const double tokens = real(heads * length);
  Pool(length, latents, latents)
      .time(state, {4 * tokens * real(latents * dim), 2 * tokens * real(latents + dim),
                    2 * tokens * real(latents)});
}

/// Performer: the same of random features; their logits are two more products of all tokens.
void performer(benchmark::State& state) {
  const std::int64_t length = state.range(0), features = state.range(1);
  const Array omega(features, dim);
  Pool pool(length, dim, features);
  pool.sizes.query = PoolQuery::logits_plus_z;
  pool.sizes.scale = std::pow(real(dim), -0.25);
  pool.sizes.directions = {dim, true};
  pool.arguments.directions = omega;
  const double tokens = real(heads * length);
  pool.time(state,
            {8 * tokens * real(features * dim),
             4 * tokens * real(dim) + real(heads * features * dim), 2 * tokens * real(features)});
}

/// Softmax of `queries` queries over `keys` keys, beside whatever else a mechanism does.
struct Attention {
  SoftmaxSizes sizes;
  SoftmaxArguments<float> arguments;
  Bytes space;

  Attention(const Array& q, const Array& k, const Array& v, const Array& out) {
    sizes.heads = sizes.kv_heads = heads;
    sizes.length = q.rows;
    sizes.key_length = k.rows;
    sizes.head_dim = q.width;
    sizes.value_dim = v.width;
    sizes.scale = 1 / std::sqrt(real(dim));
    arguments.q = q;
    arguments.k = k;
    arguments.v = v;
    arguments.out = out;
    space = bytes_of(softmax_forward_bytes<float>(sizes, 64));
  }
  void operator()(ThreadTeam& team) const {
    softmax_forward(sizes, arguments, team, space.get(),
                    softmax_forward_bytes<float>(sizes, team.size()));
  }
};

/// Luna, tied: L slots over all tokens, the tokens over the slots; four products. The slots'
/// product with W_c between them is left out here: it does not grow with the tokens.
void luna(benchmark::State& state) {
  const std::int64_t length = state.range(0), latents = state.range(1);
  const Array slots(latents, dim), query(length, dim), tokens(length, dim), pack(latents, dim);
  const Array out(length, dim);
  const Attention packing(slots, tokens, tokens, pack), reading(query, pack, pack, out);
  const double count = real(heads * length);
  measure(state,
          {8 * count * real(latents * dim), real(heads * latents * dim) + 3 * count * real(dim),
           2 * count * real(latents)},
          [&](ThreadTeam& team) {
            packing(team);
            reading(team);
          });
}

/// Perceiver: the same weights pool keys and values, so five products.
void perceiver(benchmark::State& state) {
  const std::int64_t length = state.range(0), latents = state.range(1);
  const Array slots(latents, dim), query(length, dim), keys(length, dim), values(length, dim);
  const Array pooled_keys(latents, dim), pooled_values(latents, dim), out(length, dim);
  const Attention packing(slots, keys, values, pooled_values);
  SoftmaxPoolArguments<float> arguments{packing.arguments, pooled_keys};
  const Bytes space = bytes_of(softmax_pool_bytes<float>(packing.sizes, 64));
  const Attention reading(query, pooled_keys, pooled_values, out);
  const double count = real(heads * length);
  measure(state,
          {10 * count * real(latents * dim), real(heads * latents * dim) + 4 * count * real(dim),
           2 * count * real(latents)},
          [&](ThreadTeam& team) {
            softmax_pool(packing.sizes, arguments, team, space.get(),
                         softmax_pool_bytes<float>(packing.sizes, team.size()));
            reading(team);
          });
}

/// Linformer: keys and values come down to L of each by matrices that all heads share; four
/// products, and one exponential a query and slot.
void linformer(benchmark::State& state) {
  const std::int64_t length = state.range(0), slots = state.range(1);
  const Array query(length, dim), keys(length, dim), values(length, dim), out(length, dim);
  const Array of_keys(slots, length), of_values(slots, length);
  const Array fewer_keys(slots, dim), fewer_values(slots, dim);
  const Attention reading(query, fewer_keys, fewer_values, out);
  SequenceProjectionSizes sizes;
  sizes.heads = heads;
  sizes.length = length;
  sizes.slots = slots;
  sizes.dim = dim;
  const Bytes space = bytes_of(sequence_projection_bytes<float>(sizes, 64));
  const auto project = [&](const Array& by, const Array& x, const Array& to, ThreadTeam& team) {
    SequenceProjectionArguments<float> arguments;
    arguments.tokens = x;
    arguments.weights = {by.data(), 0, 0, length};
    arguments.out = to;
    sequence_projection(sizes, arguments, team, space.get(),
                        sequence_projection_bytes<float>(sizes, team.size()));
  };
  const double tokens = real(heads * length);
  measure(state,
          {8 * tokens * real(slots * dim), 4 * tokens * real(dim) + 2 * real(slots * length),
           tokens * real(slots)},
          [&](ThreadTeam& team) {
            project(of_keys, keys, fewer_keys, team);
            project(of_values, values, fewer_values, team);
            reading(team);
          });
}

/// LAVO, causal: softmax over windows of 128 with a bias by distance, averaged with the memory of
/// the windows before; two products of each pair in a window and of each token with the bases.
void lavo(benchmark::State& state) {
  const std::int64_t length = state.range(0), count = state.range(1);
  constexpr std::int64_t window = 128;
  const Array query(length, dim), keys(length, dim), values(length, dim), out(length, dim);
  const Array bases(count, dim), bias(2 * window - 1, 1);
  Attention local(query, keys, values, out);
  local.sizes.left = window - 1;
  local.sizes.right = 0;
  local.sizes.bias_reach = window - 1;
  local.arguments.bias = bias.data();
  local.space = bytes_of(softmax_forward_bytes<float>(local.sizes, 64));
  LavoSizes sizes;
  sizes.heads = heads;
  sizes.length = sizes.memory_length = length;
  sizes.bases = count;
  sizes.head_dim = dim;
  sizes.scale = 1 / std::sqrt(real(dim));
  sizes.order = MemoryOrder::windows;
  sizes.window = window;
  sizes.averaged = true;
  LavoArguments<float> arguments;
  arguments.query = query;
  arguments.tokens = out;
  arguments.out = out;
  arguments.bases = bases;
  const Bytes space = bytes_of(lavo_forward_bytes<float>(sizes, 64));
  const double tokens = real(heads * length);
  const double pairs = tokens * window - real(heads) * window * (window - 1) / 2;
  measure(state,
          {4 * real(dim) * (pairs + tokens * real(count)), 4 * tokens * real(dim),
           pairs + tokens * real(count)},
          [&](ThreadTeam& team) {
            local(team);
            lavo_forward(sizes, arguments, team, space.get(),
                         lavo_forward_bytes<float>(sizes, team.size()));
          });
}

void sizes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"length", "latents"})
      ->ArgsProduct({{2048, 8192}, {64, 256}})
      ->UseRealTime()
      ->Unit(benchmark::kMicrosecond);
}

}  // namespace

BENCHMARK(latte)->Name("pool_latte")->Apply(sizes);
BENCHMARK(performer)->Name("pool_performer")->Apply(sizes);
BENCHMARK(luna)->Name("pool_luna")->Apply(sizes);
BENCHMARK(perceiver)->Name("pool_perceiver")->Apply(sizes);
BENCHMARK(linformer)->Name("pool_linformer")->Apply(sizes);
BENCHMARK(lavo)->Name("pool_lavo")->Apply(sizes);
