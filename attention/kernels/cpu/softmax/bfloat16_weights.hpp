// Weights of bfloat16 straight from scores, in words of 16 bits: 2^x of 32 scores takes some 5
// cycles, where exponentials in float that are then rounded take 9.
#pragma once

#include <cmath>

#include "attention/kernels/cpu/softmax/bfloat16_tile.hpp"

namespace attnbench::kernels::bfloat16 {

/// A score x in base 2, from -`reach` to `reach`, becomes a word of fixed point with 9 bits of
/// fraction f; 2^x has the exponent of its integer part and the mantissa 1 + f less a correction,
/// which a table holds for the upper 7 bits of f. A weight is at most 5.3e-3 off, 1.77e-3 in the
/// root mean square and 1.5e-4 in the mean; the exact one, rounded, 3.9e-3, 1.7e-3 and 0. Outside
/// of the reach results mean nothing, nor do those of NaN.
struct PowerTable {
  static constexpr float reach = 63.0F;
  static constexpr int fraction = 9;  // bits of a word
  /// Adding it leaves x in fixed point in the lower bits of the sum.
  static constexpr float to_words = 1.5F * (1 << (23 - fraction));

  alignas(64) std::uint8_t correction[128];  // 1 + f - 2^f in units of the last bit of f
  alignas(64) std::uint8_t upper[64];        // for each byte of words, where its bits begin

  PowerTable() {
    constexpr double unit = 1 << fraction;
    for (int i = 0; i < 128; ++i) {
      // In the middle of the four words that share it; and half a bit more, for halves round up.
      const double f = (4 * i + 1.5) / unit;
      correction[i] = static_cast<std::uint8_t>(std::lrint(unit * (1 + f - std::exp2(f)) + 0.5));
    }
    for (int i = 0; i < 64; ++i) upper[i] = static_cast<std::uint8_t>(i % 8 / 2 * 16 + 2);
  }
};

#if defined(__x86_64__)

/// 32 weights at once, the table in registers.
class Powers {
  using S = Simd<float, 64>;

 public:
  explicit ATTNBENCH_INLINE Powers(const PowerTable& table, float factor)
      : factor_(S::broadcast(factor)) {
    __builtin_memcpy(&low_, table.correction, 64);
    __builtin_memcpy(&high_, table.correction + 64, 64);
    __builtin_memcpy(&upper_, table.upper, 64);
  }
  /// 2^(factor score), numbers j and j + 16 beside each other.
  ATTNBENCH_INLINE Words of(const float* scores) const {
    const auto first = factor_ * S::load(scores) + PowerTable::to_words;
    const auto second = factor_ * S::load(scores + S::lanes) + PowerTable::to_words;
    Words up;
    asm("vpslldq $2, %1, %0" : "=v"(up) : "v"(second));
    constexpr std::uint32_t low_word = 0xFFFF;
    const auto merged =
        (reinterpret_cast<const Integers&>(first) & low_word) | (Integers(up) & ~low_word);
    const Words x = Words(merged);
    // The upper bits of each fraction into the byte below it, and the table's byte in their place.
    Words correction;
    asm("vpmultishiftqb %1, %2, %0" : "=v"(correction) : "v"(x), "v"(upper_));
    asm("vpermi2b %2, %1, %0%{%3%}%{z%}"
        : "+v"(correction)
        : "v"(low_), "v"(high_), "Yk"(even_bytes));
    Words rounded;
    asm("vpmulhrsw %2, %1, %0" : "=v"(rounded) : "v"(x - correction), "v"(Words{} + quarter));
    return rounded + one;
  }

 private:
  using Integers = typename S::Integers;
  static constexpr std::uint64_t even_bytes = 0x5555555555555555;
  static constexpr Bits quarter = 1 << 13;  // of 2^15: drops two bits, to nearest

  typename S::Vector factor_;
  Words low_, high_, upper_;
};

#endif

}  // namespace attnbench::kernels::bfloat16
