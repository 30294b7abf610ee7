// Linformer's projections along the sequence on the CPU against their definition in double.
#include "attention/kernels/sequence_projection.hpp"

#include <random>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "tests/attention/kernels/arrays.hpp"
#include "tests/attention/kernels/closeness.hpp"

namespace attnbench::kernels::test {
namespace {

template <class T>
struct Projection {
  using R = Compute<T>;
  SequenceProjectionSizes sizes;
  std::vector<T> tokens;
  std::vector<R> weights, out;
  std::vector<std::uint8_t> mask;

  Projection(std::int64_t length, std::int64_t slots, std::int64_t dim, bool masked) {
    std::mt19937 engine(7);
    sizes.batch = sizes.heads = 2;
    sizes.length = length;
    sizes.slots = slots;
    sizes.dim = dim;
    tokens = drawn<T>(engine, 4 * length * dim, 1);
    weights = drawn<R>(engine, 2 * slots * length, 1);
    out = drawn<R>(engine, 4 * slots * dim, 1);
    if (masked) mask = drawn_mask(engine, 2 * length);
  }
  void run(int threads) {
    SequenceProjectionArguments<T> a;
    a.tokens = rows_of<const T>(tokens, 2, sizes.length, sizes.dim);
    a.weights = rows_of<const R>(weights, 2, sizes.slots, sizes.length);
    a.out = rows_of<R>(out, 2, sizes.slots, sizes.dim);
    if (!mask.empty()) a.key_mask = mask.data();
    a.mask_stride = sizes.length;
    on_workspace(threads, sequence_projection_bytes<T>(sizes, threads),
                 [&](ThreadTeam& team, void* space, std::size_t bytes) {
                   sequence_projection(sizes, a, team, space, bytes);
                 });
  }
  std::vector<double> define() const {
    std::vector<double> y(out.size(), 0.0);
    for (std::int64_t head = 0; head < 4; ++head) {
      for (std::int64_t l = 0; l < sizes.slots; ++l) {
        for (std::int64_t t = 0; t < sizes.length; ++t) {
          if (!mask.empty() && mask[static_cast<std::size_t>(head / 2 * sizes.length + t)] == 0) {
            continue;
          }
          const double e =
              weights[static_cast<std::size_t>((head % 2 * sizes.slots + l) * sizes.length + t)];
          for (std::int64_t d = 0; d < sizes.dim; ++d) {
            y[static_cast<std::size_t>((head * sizes.slots + l) * sizes.dim + d)] +=
                e *
                double{widen(
                    tokens[static_cast<std::size_t>((head * sizes.length + t) * sizes.dim + d)])};
          }
        }
      }
    }
    return y;
  }
};

}  // namespace

TEMPLATE_TEST_CASE("kernels sequence projection: equals its definition at odd sizes", "", float,
                   double, BFloat16) {
  for (const bool masked : {false, true}) {
    for (const auto& [length, slots, dim] :
         {std::tuple{1, 1, 1}, {65, 7, 5}, {64, 64, 64}, {200, 70, 43}, {1100, 130, 16}}) {
      CAPTURE(masked, length, slots, dim);
      Projection<TestType> problem(length, slots, dim, masked);
      problem.run(3);
      // The result is stored as it is computed: bfloat16 is exact in float.
      CHECK(relative_rms(problem.out, problem.define()) < Bars<Compute<TestType>>::forward);
    }
  }
}

TEST_CASE("kernels sequence projection: bits, instruction sets, no tokens") {
  Projection<float> one(900, 70, 24, true);
  Projection<float> many = one;
  one.run(1);
  many.run(4);
  CHECK(one.out == many.out);
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::amx}) {
    limit_isa(isa);
    many.run(2);
    CHECK(relative_rms(many.out, one.define()) < Bars<float>::forward);
  }
  Projection<double> none(0, 3, 4, false);
  none.run(2);
  for (const double each : none.out) CHECK(each == 0);
}

}  // namespace attnbench::kernels::test
