#include "tests/benchmarks/peak.hpp"

#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "attention/kernels/cpu/product/multiply.hpp"
#include "attention/kernels/cpu/simd/amx.hpp"
#include "attention/kernels/cpu/softmax/bfloat16_tile.hpp"
#include "harness/measure/cpu_loops.hpp"
#include "tests/benchmarks/aligned.hpp"
#include "tests/benchmarks/token_scan.hpp"
#include "tests/support/thread_pool.hpp"

namespace attnbench::bench {
namespace {

namespace amx = kernels::amx;

#if defined(__x86_64__)

/// 12 chains of vdpbf16ps: 64 operations each.
ATTNBENCH_AVX512_BF16 float dot_chains(std::int64_t rounds) {
  typedef float Vector __attribute__((vector_size(64)));
  Vector sums[12] = {};
  const Vector ones = Vector{} + 1.0F;
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (auto& sum : sums) asm volatile("vdpbf16ps %1, %1, %0" : "+v"(sum) : "v"(ones));
  }
  for (int i = 1; i < 12; ++i) sums[0] += sums[i];
  return sums[0][0];
}

/// Four products of tiles, as many as a kernel has sums: 16 x 16 x 32 multiply-adds each.
ATTNBENCH_AVX512_BF16 float tile_chains(std::int64_t rounds) {
  amx::configure();
  amx::zero<0>();
  amx::zero<1>();
  amx::zero<2>();
  amx::zero<3>();
  amx::zero<4>();
  amx::zero<5>();
  for (std::int64_t i = 0; i < rounds; ++i) {
    amx::multiply<0, 4, 5>();
    amx::multiply<1, 4, 5>();
    amx::multiply<2, 4, 5>();
    amx::multiply<3, 4, 5>();
  }
  amx::release();
  return 0;
}

ATTNBENCH_AVX512_BF16 void bfloat16_weights(const float* from, float* to, std::int64_t count) {
  using S = kernels::Simd<float, 64>;
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < count; i += 2 * S::lanes) {
    const auto low = S::exp2_by_scaling<3>(S::load(from + i));
    const auto high = S::exp2_by_scaling<3>(S::load(from + i + S::lanes));
    const kernels::bfloat16::Words both = kernels::bfloat16::rounded_words(low, high);
    __builtin_memcpy(to + i / 2, &both, sizeof both);
  }
}

#endif

constexpr std::int64_t product_rows = 24, product_depth = 96;
template <int Bytes>
constexpr int product_vectors = Bytes == 64 ? 4 : 3;
template <int Bytes>
constexpr std::int64_t product_columns = Bytes / 4 * product_vectors<Bytes>;

/// Loads take power from the multiply-adds, and a machine may lower its clock for it: what remains
/// of the peak where the operands are read, with as many sums as the registers hold.
template <int Bytes>
float products(std::int64_t rounds) {
  constexpr int M = Bytes == 64 ? 6 : 4;
  constexpr std::int64_t columns = product_columns<Bytes>;
  alignas(64) float a[product_rows * product_depth];
  alignas(64) float b[product_depth * columns];
  alignas(64) float c[product_rows * columns];
  float x = 0;
  for (float& number : a) number = x = x < 1 ? x + 0.137F : x - 1.9F;
  for (float& number : b) number = x = x < 1 ? x + 0.173F : x - 1.7F;
  kernels::Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    for (std::int64_t i = 0; i < rounds * product_rows; i += M) {
      const std::int64_t row = i % product_rows;
      kernels::detail::multiply_tile<float, Bytes, M, product_vectors<Bytes>, kernels::Start::zero>(
          product_depth, {a + row * product_depth, product_depth, 1}, b, columns, c + row * columns,
          columns);
    }
  });
  return c[0];
}

struct Loop {
  float (*run)(std::int64_t rounds) = nullptr;
  double flops_per_round = 0;
};

Loop loop_of(Unit unit) {
  if (unit == Unit::fma_float32) {
    const measure::CpuLoops& loops = measure::cpu_loops();
    return {loops.multiply_add, loops.flops_per_round};
  }
  if (unit == Unit::product_float32) {
    const auto loop = kernels::pick(products<16>, products<32>, products<64>);
    const std::int64_t columns =
        kernels::pick(product_columns<16>, product_columns<32>, product_columns<64>);
    return {loop, 2.0 * static_cast<double>(product_rows * product_depth * columns)};
  }
#if defined(__x86_64__)
  if (unit == Unit::dot_bfloat16 && kernels::best_isa() >= kernels::Isa::avx512_bf16)
    return {dot_chains, 12.0 * 64};
  if (unit == Unit::tile_bfloat16 && amx::usable()) return {tile_chains, 4.0 * 2 * 16 * 16 * 32};
#endif
  return {};
}

using Floats = Block<float>;

/// Numbers that their pages are there for, 64-byte aligned; `count` is a multiple of 16.
Floats floats(std::int64_t count) {
  Floats x = block_of<float>(count);
  std::fill_n(x.get(), count, 0.5F);
  return x;
}

/// The greatest rate of `amount` a call in `trials` calls.
template <class Call>
double best_rate(double amount, int trials, const Call& call) {
  double best = 0;
  for (int trial = 0; trial < trials; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    call();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, amount / seconds.count());
  }
  return best;
}

/// The peak rate of `raise`, in numbers per second of all threads.
double raising_peak(void (*raise)(const float* from, float* to, std::int64_t count),
                    kernels::ThreadTeam& team) {
  constexpr std::int64_t count = 2048;
  constexpr int repeats = 4'000;
  std::vector<Floats> from, to;
  for (int i = 0; i < team.size(); ++i) {
    from.push_back(floats(count));
    to.push_back(floats(count));
  }
  return best_rate(static_cast<double>(count) * repeats * team.size(), 40, [&] {
    team.run([&](int worker) {
      const auto i = static_cast<std::size_t>(worker);
      for (int r = 0; r < repeats; ++r) {
        raise(from[i].get(), to[i].get(), count);
        benchmark::ClobberMemory();
      }
    });
  });
}

void ceiling(benchmark::State& state, Unit unit) {
  test::PoolTeam team(static_cast<int>(std::thread::hardware_concurrency()));
  double best = 0;
  for (auto _ : state) best = std::max(best, peak(unit, team));
  if (best == 0) state.SkipWithError("this machine has no such unit");
  state.counters["flops"] = benchmark::Counter(best, {}, benchmark::Counter::kIs1000);
}

}  // namespace

double peak(Unit unit, kernels::ThreadTeam& team) {
  const Loop loop = loop_of(unit);
  if (loop.run == nullptr) return 0;
  double best = 0;
  // Short runs find an undisturbed moment sooner.
  const auto rounds = static_cast<std::int64_t>(1e8 / loop.flops_per_round);
  for (int trial = 0; trial < 40; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    team.run([&](int) { benchmark::DoNotOptimize(loop.run(rounds)); });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    const double flops = static_cast<double>(rounds) * loop.flops_per_round * team.size();
    best = std::max(best, flops / seconds.count());
  }
  return best;
}

double exponential_peak(kernels::ThreadTeam& team) {
  return raising_peak(measure::cpu_loops().exponentials, team);
}

double bfloat16_weight_peak(kernels::ThreadTeam& team) {
#if defined(__x86_64__)
  if (kernels::best_isa() >= kernels::Isa::avx512_bf16) return raising_peak(bfloat16_weights, team);
#endif
  return 0;
}

double reading_peak(double bytes, kernels::ThreadTeam& team) {
  const auto count = static_cast<std::int64_t>(bytes / 4) / 16 * 16;
  const Floats x = floats(count);
  std::vector<float> sums(static_cast<std::size_t>(team.size()));
  const int trials = std::clamp(static_cast<int>(1e9 / bytes), 5, 200);
  return best_rate(4 * static_cast<double>(count), trials, [&] {
    read(x.get(), count, team, sums.data());
    benchmark::DoNotOptimize(sums.data());
  });
}

BENCHMARK_CAPTURE(ceiling, fma_float32, Unit::fma_float32)->Iterations(3);
BENCHMARK_CAPTURE(ceiling, product_float32, Unit::product_float32)->Iterations(3);
BENCHMARK_CAPTURE(ceiling, dot_bfloat16, Unit::dot_bfloat16)->Iterations(3);
BENCHMARK_CAPTURE(ceiling, tile_bfloat16, Unit::tile_bfloat16)->Iterations(3);

}  // namespace attnbench::bench
