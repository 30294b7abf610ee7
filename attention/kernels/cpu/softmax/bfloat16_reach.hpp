// How large a score can be at most, by the norms of its query and its key (Cauchy and Schwarz),
// from the numbers as they are packed for tiles.
#pragma once

#include <bit>
#include <cmath>

#include "attention/kernels/cpu/simd/joined_rows.hpp"
#include "attention/kernels/cpu/softmax/bfloat16_tile.hpp"

namespace attnbench::kernels::bfloat16 {

#if defined(__x86_64__)

ATTNBENCH_INLINE void add_squares(const Bits* numbers, Simd<float, 64>::Vector& total) {
  Words words;
  __builtin_memcpy(&words, numbers, sizeof words);
  add_products(words, words, total);
}

/// The greatest square of a norm among rows that pack_right_transposed shows it; NaN where one is.
class GreatestSquare {
  using S = Simd<float, 64>;

 public:
  ATTNBENCH_INLINE void take(const typename S::Vector (&pairs)[16]) {
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) {
      const auto& words = reinterpret_cast<const Words&>(pairs[r]);
      add_products(words, words, squares_[r % 4]);
    }
  }
  ATTNBENCH_INLINE void end_rows() {
    const auto sum = (squares_[0] + squares_[1]) + (squares_[2] + squares_[3]);
    for (auto& square : squares_) square = S::broadcast(0);
    // As bits, where a NaN is greater than any number that is not negative.
    const auto& bits = reinterpret_cast<const typename S::Integers&>(sum);
    most_ = bits > most_ ? bits : most_;
  }
  float greatest() const {
    std::uint32_t greatest = 0;
    for (int i = 0; i < S::lanes; ++i) greatest = std::max(greatest, std::uint32_t{most_[i]});
    return std::bit_cast<float>(greatest);
  }

 private:
  typename S::Vector squares_[4] = {};
  typename S::Integers most_ = {};
};

/// The norms of `count` rows of `stride` numbers each, both multiples of 16 and of 32.
ATTNBENCH_INLINE void norms_of(const Bits* from, std::int64_t count, std::int64_t stride,
                               float* norms) {
  using S = Simd<float, 64>;
  for (std::int64_t i = 0; i < count; i += rows) {
    typename S::Vector squares[16] = {};
    for (std::int64_t l = 0; l < stride; l += depth) {
#pragma GCC unroll 16
      for (int r = 0; r < 16; ++r) add_squares(from + (i + r) * stride + l, squares[r]);
    }
    const auto sums = summed<S>(squares);
    for (int r = 0; r < 16; ++r) norms[i + r] = std::sqrt(sums[r]);
  }
}

#endif

}  // namespace attnbench::kernels::bfloat16
