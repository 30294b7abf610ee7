// How bfloat16 rows are laid out for products of pairs: tiles of AMX, of which AVX512_BF16 takes a
// row at a time. A left side is 16 rows of 32 numbers as they lie. A right side holds pairs of its
// rows side by side: 16 rows of 16 pairs. One tile is 1 KiB.
#pragma once

#include "attention/kernels/cpu/simd/simd.hpp"
#include "attention/kernels/cpu/softmax/tile.hpp"

namespace attnbench::kernels::bfloat16 {

using Bits = std::uint16_t;
constexpr std::int64_t rows = 16;   ///< of a tile
constexpr std::int64_t depth = 32;  ///< numbers of a tile's row
constexpr std::int64_t tile_numbers = rows * depth;

typedef Bits Words __attribute__((vector_size(64), may_alias));

/// 32 numbers of a row of which `width` are left, zeros behind them or where the row is not there.
ATTNBENCH_INLINE Words load_row(const BFloat16* from, bool there, std::int64_t width) {
  Words row;
  if (there && width >= depth) {
    __builtin_memcpy(&row, from, sizeof row);
    return row;
  }
  alignas(64) BFloat16 numbers[depth] = {};
  if (there) std::copy_n(from, width, numbers);
  __builtin_memcpy(&row, numbers, sizeof row);
  return row;
}

/// `count` rows of `width` numbers, filled up with zeros to `to_count` rows of `stride`, a multiple
/// of 32. `flip` is the sign bit where all numbers are to be negated, or 0.
ATTNBENCH_INLINE void pack_left(const BFloat16* from, std::int64_t row_stride, std::int64_t count,
                                std::int64_t width, Bits flip, Bits* to, std::int64_t to_count,
                                std::int64_t stride) {
  for (std::int64_t i = 0; i < to_count; ++i) {
    for (std::int64_t d = 0; d < stride; d += depth, to += depth) {
      const Words row = load_row(from + i * row_stride + d, i < count, width - d) ^ flip;
      __builtin_memcpy(to, &row, sizeof row);
    }
  }
}

/// 16 rows of 32 numbers, `count` and `width` of which are there, the others 0.
ATTNBENCH_INLINE void load_block(const BFloat16* from, std::int64_t row_stride, std::int64_t count,
                                 std::int64_t width, Simd<float, 64>::Vector (&block)[16]) {
  if (count >= rows && width >= depth) {
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) __builtin_memcpy(&block[i], from + i * row_stride, 64);
    return;
  }
  alignas(64) BFloat16 numbers[tile_numbers] = {};
  for (std::int64_t i = 0; i < std::min(count, rows); ++i) {
    std::copy_n(from + i * row_stride, std::min(width, depth), numbers + i * depth);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) __builtin_memcpy(&block[i], numbers + i * depth, 64);
}

/// Looks at nothing.
struct NoLook {
  ATTNBENCH_INLINE void take(const Simd<float, 64>::Vector (&)[16]) {}
  ATTNBENCH_INLINE void end_rows() {}
};

/// The transpose of `count` rows of `width` numbers as right sides: for each 16 of `to_count` rows
/// the tiles of `depth` columns each, pairs of columns being the tiles' rows. `look` is shown each
/// tile, and told when those of 16 rows end.
template <class Look = NoLook>
ATTNBENCH_INLINE void pack_right_transposed(const BFloat16* from, std::int64_t row_stride,
                                            std::int64_t count, std::int64_t width, Bits* to,
                                            std::int64_t to_count, Look&& look = {}) {
  using S = Simd<float, 64>;
  for (std::int64_t i = 0; i < to_count; i += rows) {
    for (std::int64_t d = 0; d < width; d += depth) {
      S::Vector block[16];
      load_block(from + i * row_stride + d, row_stride, count - i, width - d, block);
      S::transpose(block);
#pragma GCC unroll 16
      for (int r = 0; r < 16; ++r) __builtin_memcpy(to + r * depth, &block[r], 64);
      look.take(block);
      to += tile_numbers;
    }
    look.end_rows();
  }
}

constexpr Bits one = 0x3F80;

/// total += a b, a pair of numbers in each lane.
ATTNBENCH_INLINE void add_products(Words a, Words b, Simd<float, 64>::Vector& total) {
  // What an instruction writes itself, the compiler would keep in memory where it is one of an
  // array.
  Simd<float, 64>::Vector sum = total;
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b));
  total = sum;
}

/// Two vectors as one of bfloat16 numbers, to nearest.
ATTNBENCH_INLINE Words rounded_words(Simd<float, 64>::Vector low, Simd<float, 64>::Vector high) {
  Words both;
  asm("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(high), "v"(low));
  return both;
}

/// The numbers of the lower half and those of the upper one beside each other.
template <std::size_t... I>
ATTNBENCH_INLINE Words pairs(Words halves, std::index_sequence<I...>) {
  return __builtin_shufflevector(halves, halves, (I % 2 * 16 + I / 2)...);
}
/// As rounded_words, the numbers of both beside each other.
ATTNBENCH_INLINE Words rounded_pairs(Simd<float, 64>::Vector even, Simd<float, 64>::Vector odd) {
  const Words halves = rounded_words(even, odd);
  return pairs(halves, std::make_index_sequence<32>{});
}

/// Every second number from the lower (Half = 0) or upper halves of a and b.
template <int Half, std::size_t... I>
ATTNBENCH_INLINE Words interleave(Words a, Words b, std::index_sequence<I...>) {
  return __builtin_shufflevector(a, b, (I % 2 * 32 + I / 2 + Half * 16)...);
}

/// `count` rows of `width` numbers as right sides: for each 32 of `to_count` rows the tiles of 16
/// columns each, 2 for every `depth` columns, pairs of rows being the tiles' rows: neighbours, or
/// `Apart` = 16 rows apart.
template <std::int64_t Apart = 1>
ATTNBENCH_INLINE void pack_right(const BFloat16* from, std::int64_t row_stride, std::int64_t count,
                                 std::int64_t width, Bits* to, std::int64_t to_count) {
  static_assert(Apart == 1 || Apart == rows);
  constexpr auto all = std::make_index_sequence<32>{};
  constexpr std::int64_t step = Apart == 1 ? 2 : 1;
  for (std::int64_t i = 0; i < to_count; i += depth) {
    for (std::int64_t d = 0; d < width; d += depth) {
      const auto pair_rows = [&](bool whole) ATTNBENCH_INLINE_LAMBDA {
        for (std::int64_t r = 0; r < rows; ++r) {
          const std::int64_t at = i + step * r;
          const BFloat16* const row = from + at * row_stride + d;
          const std::int64_t there = whole ? depth : width - d;
          const Words first = load_row(row, whole || at < count, there);
          const Words second =
              load_row(row + Apart * row_stride, whole || at + Apart < count, there);
          const Words low = interleave<0>(first, second, all);
          const Words high = interleave<1>(first, second, all);
          __builtin_memcpy(to + r * depth, &low, 64);
          __builtin_memcpy(to + tile_numbers + r * depth, &high, 64);
        }
      };
      if (count - i >= depth && width - d >= depth) {
        pair_rows(true);
      } else {
        pair_rows(false);
      }
      to += 2 * tile_numbers;
    }
  }
}

/// The transpose of `count` rows of `width` numbers as a left side: rounded up to 32 rows of
/// `stride` numbers, a multiple of 32, all written.
ATTNBENCH_INLINE void pack_left_transposed(const BFloat16* from, std::int64_t row_stride,
                                           std::int64_t count, std::int64_t width, Bits* to,
                                           std::int64_t stride) {
  using S = Simd<float, 64>;
  for (std::int64_t i = 0; i < stride; i += depth) {
    for (std::int64_t d = 0; d < width; d += depth) {
      alignas(64) Bits pairs[2 * tile_numbers];
      pack_right(from + i * row_stride + d, row_stride, count - i, std::min(width - d, depth),
                 pairs, depth);
      for (std::int64_t half = 0; half < 2; ++half) {
        S::Vector block[16];
#pragma GCC unroll 16
        for (int r = 0; r < 16; ++r) {
          __builtin_memcpy(&block[r], pairs + half * tile_numbers + r * depth, 64);
        }
        S::transpose(block);
        Bits* const tile = to + (d + half * rows) * stride + i;
#pragma GCC unroll 16
        for (int r = 0; r < 16; ++r) __builtin_memcpy(tile + r * stride, &block[r], 64);
      }
    }
  }
}

}  // namespace attnbench::kernels::bfloat16
