// What only the bfloat16 softmax by products of pairs does: weights in words of fixed point where
// norms bound the scores, and how that meets blocks whose scores are out of reach. All of it is
// skipped where this machine has no such products, but for the comparisons with the definition.
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "attention/kernels/cpu/simd/simd.hpp"
#include "attention/kernels/softmax.hpp"
#include "tests/attention/kernels/closeness.hpp"
#include "tests/attention/kernels/softmax_problem.hpp"

#if defined(__x86_64__)
#include "attention/kernels/cpu/softmax/bfloat16_reach.hpp"
#include "attention/kernels/cpu/softmax/bfloat16_weights.hpp"
#endif

#define NEEDS_PAIRS()                                               \
  if (best_isa() < Isa::avx512_bf16) {                              \
    WARN("needs AVX512_BF16: this machine or its system has none"); \
    return;                                                         \
  }

using namespace attnbench::kernels;
using namespace attnbench::kernels::test;

namespace {

constexpr std::int64_t dim = 32;

SoftmaxSizes sizes_of(std::int64_t length, std::int64_t keys, bool causal) {
  SoftmaxSizes sizes;
  sizes.heads = sizes.kv_heads = 2;
  sizes.length = length;
  sizes.key_length = keys;
  sizes.head_dim = sizes.value_dim = dim;
  sizes.scale = 1 / std::sqrt(static_cast<double>(dim));
  if (causal) {
    sizes.right = 0;
    sizes.offset = keys - length;
  }
  return sizes;
}

void scale_rows(std::vector<BFloat16>& x, std::int64_t length, std::int64_t first,
                std::int64_t last, float factor) {
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t i = (head * length + first) * dim; i < (head * length + last) * dim; ++i) {
      narrow(factor * widen(x[static_cast<std::size_t>(i)]), x[static_cast<std::size_t>(i)]);
    }
  }
}

/// Calls `body` with AMX where there is one, and without it.
template <class Body>
void by_each_unit(const Body& body) {
  for (const Isa isa : {Isa::amx, Isa::avx512_bf16}) {
    limit_isa(isa);
    CAPTURE(static_cast<int>(best_isa()));
    body();
  }
  limit_isa(Isa::amx);
}

void check(Problem<BFloat16>& problem, const Expected& expected) {
  problem.forward(2);
  CHECK(relative_rms(problem.out, expected.out) < Bars<BFloat16>::forward);
  for (std::size_t i = 0; i < problem.lse.size(); ++i) {
    const bool blind = std::isinf(expected.lse[i]);
    REQUIRE(std::isinf(problem.lse[i]) == blind);
    // The sum is one of rounded weights, each up to 5.3e-3 off.
    if (!blind) REQUIRE(std::fabs(problem.lse[i] - expected.lse[i]) < 5.5e-3);
  }
}

/// Output and logarithms of sums, whichever path each block takes.
void compare(Problem<BFloat16>& problem) {
  const Expected expected = define(problem);
  by_each_unit([&] { check(problem, expected); });
}

}  // namespace

#if defined(__x86_64__)

namespace {

/// 32 weights, in the order of their scores.
ATTNBENCH_AVX512_BF16 void weights_of(const float* scores, float factor, double* weights) {
  static const bfloat16::PowerTable table;
  const bfloat16::Words words = bfloat16::Powers(table, factor).of(scores);
  for (int j = 0; j < 32; ++j) {
    const std::uint32_t bits = words[j < 16 ? 2 * j : 2 * (j - 16) + 1];
    weights[j] = double{std::bit_cast<float>(bits << 16)};
  }
}

/// The square of the greatest norm, as packing `count` rows finds it.
ATTNBENCH_AVX512_BF16 float square_of(const std::vector<BFloat16>& numbers, std::int64_t count,
                                      std::int64_t width, bfloat16::Bits* packed) {
  bfloat16::GreatestSquare square;
  bfloat16::pack_right_transposed(numbers.data(), width, count, width, packed,
                                  (count + 15) / 16 * 16, square);
  return square.greatest();
}
/// The norms of rows as tiles take them, filled up to 48.
ATTNBENCH_AVX512_BF16 void row_norms(const std::vector<BFloat16>& numbers, std::int64_t count,
                                     std::int64_t width, bfloat16::Bits* packed,
                                     std::int64_t stride, float* norms) {
  bfloat16::pack_left(numbers.data(), width, count, width, 0, packed, 48, stride);
  bfloat16::norms_of(packed, 48, stride, norms);
}

}  // namespace

TEST_CASE("kernels softmax of bfloat16: weights from words, over the whole reach") {
  NEEDS_PAIRS();
  for (const float factor : {1.0F, 0.18033688F, 3.7F}) {
    const double reach = double{bfloat16::PowerTable::reach};
    const double step = 0.000531;  // a little more than a quarter of a word's last bit
    double worst = 0, errors = 0, squares = 0, count = 0;
    for (double x = -reach; x <= reach; x += 32 * step) {
      alignas(64) float scores[32];
      double weights[32];
      for (int j = 0; j < 32; ++j) {
        scores[j] = static_cast<float>(std::min(x + step * j, reach) / double{factor});
      }
      weights_of(scores, factor, weights);
      for (int j = 0; j < 32; ++j) {
        const double error = weights[j] / std::exp2(double{factor} * double{scores[j]}) - 1;
        worst = std::max(worst, std::fabs(error));
        squares += error * error;
        errors += error;
        ++count;
      }
    }
    CAPTURE(factor);
    CHECK(worst < 5.3e-3);
    CHECK(std::sqrt(squares / count) < 1.77e-3);
    CHECK(std::fabs(errors / count) < 1.5e-4);
  }
}

TEST_CASE("kernels softmax of bfloat16: norms, and a NaN among them") {
  NEEDS_PAIRS();
  for (const std::int64_t width : {32, 43, 128}) {
    const std::int64_t count = width == 43 ? 45 : 48;
    std::mt19937 engine(3);
    auto numbers = drawn<BFloat16>(engine, count * width, 1.0);
    const auto square = [&](std::int64_t row) {
      double sum = 0;
      for (std::int64_t d = 0; d < width; ++d) {
        const double x = widen(numbers[static_cast<std::size_t>(row * width + d)]);
        sum += x * x;
      }
      return sum;
    };
    double most = 0;
    for (std::int64_t row = 0; row < count; ++row) most = std::max(most, square(row));
    const std::int64_t stride = (width + 31) / 32 * 32;
    Block memory(static_cast<std::size_t>(2 * 48 * stride) * sizeof(bfloat16::Bits));
    auto* const packed = static_cast<bfloat16::Bits*>(memory.data());
    CHECK(square_of(numbers, count, width, packed) == Approx(most));
    std::vector<float> norms(48);
    row_norms(numbers, count, width, packed + 48 * stride, stride, norms.data());
    for (std::int64_t row = 0; row < 48; ++row) {
      const double exact = row < count ? std::sqrt(square(row)) : 0;
      CHECK(norms[static_cast<std::size_t>(row)] == Approx(exact));
    }
    for (const std::uint16_t bad : {0x7FC0, 0xFFC0, 0x7F80}) {  // NaN of both signs, infinity
      for (const std::int64_t row : {std::int64_t{0}, std::int64_t{17}, count - 1}) {
        auto& number = numbers[static_cast<std::size_t>(row * width + 9)].bits;
        const auto before = std::exchange(number, bad);
        CHECK(!(square_of(numbers, count, width, packed) < 1e30F));
        number = before;
      }
    }
    CHECK(memory.intact());
  }
}

#endif

TEST_CASE("kernels softmax of bfloat16: scores within reach, around it and beyond it") {
  for (const std::int64_t length : {31, 64, 300, 530}) {
    for (const bool causal : {false, true}) {
      for (const double spread : {0.5, 2.2, 3.0, 4.0}) {
        CAPTURE(length, causal, spread);
        Problem<BFloat16> problem(sizes_of(length, length, causal), spread, length == 300);
        compare(problem);
      }
    }
  }
}

TEST_CASE("kernels softmax of bfloat16: some queries and some keys beyond reach") {
  for (const bool causal : {false, true}) {
    for (const std::int64_t first : {0, 40, 256, 300}) {
      CAPTURE(causal, first);
      Problem<BFloat16> far_queries(sizes_of(320, 320, causal));
      scale_rows(far_queries.q, 320, first, first + 5, 20.0F);
      compare(far_queries);
      // The maximum is 0 by agreement until such keys are met, and must fade from there.
      Problem<BFloat16> far_keys(sizes_of(320, 320, causal));
      scale_rows(far_keys.k, 320, first, first + 3, 20.0F);
      compare(far_keys);
    }
  }
}

TEST_CASE("kernels softmax of bfloat16: all scores far below 0, or far above it") {
  for (const float sign : {-1.0F, 1.0F}) {
    for (const float level : {5.0F, 15.6F, 16.0F, 30.0F}) {  // 6, 62, 65 and 230 in base 2
      CAPTURE(sign, level);
      SoftmaxSizes sizes = sizes_of(70, 2100, false);  // keys in parts
      sizes.heads = sizes.kv_heads = 1;
      Problem<BFloat16> problem(sizes, 0.25);
      for (std::int64_t t = 0; t < 70; ++t) narrow(level, problem.q[std::size_t(t * dim)]);
      for (std::int64_t s = 0; s < 2100; ++s) {
        narrow(sign * level * (s < 1000 ? 0.5F : 1.0F), problem.k[std::size_t(s * dim)]);
      }
      compare(problem);
    }
  }
}

TEST_CASE(
    "kernels softmax of bfloat16: a part of the keys that nothing sees beside one far below 0") {
  SoftmaxSizes sizes = sizes_of(40, 2100, false);
  sizes.heads = sizes.kv_heads = 1;
  Problem<BFloat16> problem(sizes, 0.25, true);
  std::fill(problem.mask.begin(), problem.mask.begin() + 1600, std::uint8_t{0});
  for (std::int64_t t = 0; t < 40; ++t) narrow(30.0F, problem.q[std::size_t(t * dim)]);
  for (std::int64_t s = 1600; s < 2100; ++s) narrow(-30.0F, problem.k[std::size_t(s * dim)]);
  compare(problem);
}

TEST_CASE(
    "kernels softmax of bfloat16: what is no number reaches the queries that see it, no other") {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    SoftmaxSizes sizes = sizes_of(300, 300, true);
    sizes.left = 70;
    Problem<BFloat16> problem(sizes);
    const Expected clean = define(problem);
    for (const std::int64_t head : {0, 1}) {
      narrow(bad, problem.k[std::size_t((head * 300 + 100) * dim + 7)]);
      narrow(bad, problem.q[std::size_t((head * 300 + 250) * dim + 7)]);
    }
    by_each_unit([&] {
      problem.forward(2);
      std::vector<BFloat16> found;
      std::vector<double> exact;
      for (std::int64_t i = 0; i < 2 * 300 * dim; ++i) {
        const std::int64_t t = i / dim % 300;
        const auto at = static_cast<std::size_t>(i);
        if ((t >= 100 && t <= 170) || t == 250) {
          if (std::isnan(bad)) REQUIRE(std::isnan(widen(problem.out[at])));
        } else {
          found.push_back(problem.out[at]);
          exact.push_back(clean.out[at]);
        }
      }
      CHECK(relative_rms(found, exact) < Bars<BFloat16>::forward);
    });
  }
}

// Whether norms bound the scores is asked for 32 queries and a tile of keys together, hidden ones
// among them: a token may decide how those before it are rounded, and no more than that.
TEST_CASE("kernels softmax of bfloat16: a huge future token changes no more than a rounding") {
  constexpr std::int64_t length = 37;
  by_each_unit([&] {
    for (const std::int64_t s : {1, 7, 8, 20, 36}) {
      Problem<BFloat16> problem(sizes_of(length, length, true));
      problem.forward(2);
      const auto out = problem.out;
      scale_rows(problem.q, length, s, s + 1, 1000.0F);
      scale_rows(problem.k, length, s, s + 1, 1000.0F);
      problem.forward(2);
      std::vector<BFloat16> found;
      std::vector<double> before;
      for (std::int64_t i = 0; i < 2 * length * dim; ++i) {
        if (i / dim % length >= s) continue;
        found.push_back(problem.out[static_cast<std::size_t>(i)]);
        before.push_back(double{widen(out[static_cast<std::size_t>(i)])});
      }
      CAPTURE(s);
      CHECK(relative_rms(found, before) < Bars<BFloat16>::forward);
    }
  });
}
