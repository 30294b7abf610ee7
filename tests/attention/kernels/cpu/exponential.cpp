#include "attention/kernels/cpu/simd/simd.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch.hpp"

using namespace attnbench::kernels;

namespace {

using Exp2 = void (*)(const double* from, double* to);
constexpr int most_lanes = 16;

/// The vectors' exp2 of 16 numbers, whatever the width.
template <class R, int Bytes>
ATTNBENCH_INLINE void take(const double* from, double* to) {
  using S = Simd<R, Bytes>;
  R numbers[most_lanes];
  for (int i = 0; i < most_lanes; ++i) numbers[i] = static_cast<R>(from[i]);
  for (int i = 0; i < most_lanes; i += S::lanes) {
    S::store(numbers + i, S::exp2(S::load(numbers + i)));
  }
  for (int i = 0; i < most_lanes; ++i) to[i] = static_cast<double>(numbers[i]);
}
template <class R>
void baseline(const double* from, double* to) {
  take<R, baseline_bytes>(from, to);
}
template <class R>
ATTNBENCH_AVX2 void avx2(const double* from, double* to) {
  take<R, avx2_bytes>(from, to);
}
template <class R>
ATTNBENCH_AVX512 void avx512(const double* from, double* to) {
  take<R, avx512_bytes>(from, to);
}

template <class R>
std::vector<Exp2> usable() {
  std::vector<Exp2> found;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_isa(isa);
    found.push_back(pick<Exp2>(baseline<R>, avx2<R>, avx512<R>));
  }
  limit_isa(Isa::amx);
  return found;
}

double of_one(Exp2 exp2, double x) {
  double from[most_lanes];
  double to[most_lanes];
  std::fill_n(from, most_lanes, x);
  exp2(from, to);
  return to[most_lanes - 1];
}

/// The greatest relative error over numbers of `next`, which returns the one after its argument,
/// from `from` up to `to`.
template <class Next>
double greatest_error(Exp2 exp2, double from, double to, const Next& next) {
  double error = 0;
  double x[most_lanes];
  double y[most_lanes];
  for (double at = from; at < to;) {
    for (double& number : x) {
      number = at;
      at = next(at);
    }
    exp2(x, y);
    for (int i = 0; i < most_lanes; ++i) {
      const double right = std::exp2(x[i]);
      error = std::max(error, std::fabs(y[i] / right - 1));
    }
  }
  return error;
}

}  // namespace

// A carried memory is multiplied by 2^0 wherever no maximum moves: were that not 1, a million
// tokens would wear it away.
TEMPLATE_TEST_CASE("whole powers of two are exact", "[exponential]", float, double) {
  for (const Exp2 exp2 : usable<TestType>()) {
    for (int power = 0; power > -126; --power) CHECK(of_one(exp2, power) == std::ldexp(1.0, power));
  }
}

TEST_CASE("exp2 of every hundredth float from -126 to 1 is right to 2.5e-7") {
  for (const Exp2 exp2 : usable<float>()) {
    const auto next = [](double x) {
      const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(x));
      return double{std::bit_cast<float>(bits - 101)};
    };
    CHECK(greatest_error(exp2, -126, -1e-30, next) < 2.5e-7);
    CHECK(greatest_error(exp2, 0, 1, [](double x) { return x + 0x1p-20; }) < 2.5e-7);
  }
}

TEST_CASE("exp2 of doubles is right to 5e-16") {
  for (const Exp2 exp2 : usable<double>()) {
    CHECK(greatest_error(exp2, -1022, 0, [](double x) { return x + 0.00137; }) < 5e-16);
    CHECK(greatest_error(exp2, -3, 0, [](double x) { return x + 1.37e-6; }) < 5e-16);
  }
}

TEMPLATE_TEST_CASE("exp2 of what is no exponent of a normal number", "", float, double) {
  const double least = std::is_same_v<TestType, float> ? -126 : -1022;
  const double infinity = std::numeric_limits<double>::infinity();
  for (const Exp2 exp2 : usable<TestType>()) {
    CHECK(of_one(exp2, 0) == Approx(1).epsilon(1e-7));
    CHECK(of_one(exp2, least) == Approx(std::exp2(least)).epsilon(1e-6));
    for (const double below : {least - 0.5, least - 30, -2000.0, -1e30, -infinity}) {
      CHECK(of_one(exp2, below) == 0);
    }
    CHECK(std::isnan(of_one(exp2, std::numeric_limits<double>::quiet_NaN())));
  }
}
