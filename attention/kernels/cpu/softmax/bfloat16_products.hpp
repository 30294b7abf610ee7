// Products of bfloat16 tiles that add to float ones, by either unit that a machine may have for
// them: AMX's tiles, or AVX512_BF16's vectors, whose `vdpbf16ps` multiplies the same pairs a row at
// a time.
//
// Both have the same functions. A kernel is a template over which of them it takes, and makes one
// for each item.
#pragma once

#include "attention/kernels/cpu/simd/amx.hpp"
#include "attention/kernels/cpu/softmax/bfloat16_tile.hpp"

namespace attnbench::kernels::bfloat16 {

#if defined(__x86_64__)

/// Four tiles of sums, and where they go.
struct Square {
  float* at[4];
  std::int64_t stride;  // in numbers

  static Square of(float* c, std::int64_t stride) {
    return {{c, c + rows, c + rows * stride, c + rows * stride + rows}, stride};
  }
};

/// By AMX, one after the other. Sums are stored while the next ones are begun: a tile that was just
/// multiplied is not there yet, and waiting for it would stop the unit. The thread's tiles are
/// configured as long as one of these lives.
class TileProducts {
 public:
  /// What was not asked for is stored in `nowhere`, [16, 16].
  explicit ATTNBENCH_INLINE TileProducts(float* nowhere)
      : last_{{nowhere, nowhere, nowhere, nowhere}, rows}, nowhere_(nowhere) {
    amx::configure();
  }
  ATTNBENCH_INLINE ~TileProducts() { amx::release(); }
  TileProducts(const TileProducts&) = delete;
  TileProducts& operator=(const TileProducts&) = delete;

  /// C[32, 32] (+)= A B over `blocks` tiles of depth: a in rows of `a_stride` numbers, whose next
  /// tiles are `a_step` numbers further; b as the tiles of two neighbouring groups of 16 columns,
  /// whose next tile of depth is `b_step` tiles further.
  template <bool Add>
  ATTNBENCH_INLINE void square(std::int64_t blocks, const Bits* a, std::int64_t a_stride,
                               std::int64_t a_step, const Bits* b0, const Bits* b1,
                               std::int64_t b_step, const Square& c) {
    const std::int64_t a_bytes = a_stride * 2;
    for (std::int64_t l = 0; l < blocks; ++l) {
      const bool first = l == 0;
      amx::load<4>(a + l * a_step, a_bytes);
      amx::load<6>(b0 + l * b_step * tile_numbers, 64);
      if (first) begin<0, Add>(c);
      amx::multiply<0, 4, 6>();
      amx::load<7>(b1 + l * b_step * tile_numbers, 64);
      if (first) begin<1, Add>(c);
      amx::multiply<1, 4, 7>();
      amx::load<5>(a + rows * a_stride + l * a_step, a_bytes);
      if (first) begin<2, Add>(c);
      amx::multiply<2, 5, 6>();
      if (first) begin<3, Add>(c);
      amx::multiply<3, 5, 7>();
    }
    last_ = c;
  }
  /// Adds to c, [32, 16], numbers that add up to the sums of the rows of a, `blocks` of [32, 32]
  /// that are `a_step` numbers apart. `ones` is a right side with ones in its first column alone.
  ATTNBENCH_INLINE void sum_rows(std::int64_t blocks, const Bits* a, std::int64_t a_step,
                                 const Bits* ones, float* c) {
    const Square sums{{c, c + rows * rows, nowhere_, nowhere_}, rows};
    amx::load<6>(ones, 64);
    begin<0, true>(sums);
    begin<1, true>(sums);
    for (std::int64_t l = 0; l < blocks; ++l) {
      amx::load<4>(a + l * a_step, 64);
      amx::multiply<0, 4, 6>();
      amx::load<5>(a + l * a_step + tile_numbers, 64);
      amx::multiply<1, 5, 6>();
    }
    amx::store<2>(last_.at[2], last_.stride * 4);
    amx::store<3>(last_.at[3], last_.stride * 4);
    last_ = sums;
  }
  /// All sums are where they go from now on.
  ATTNBENCH_INLINE void end() {
    amx::store<0>(last_.at[0], last_.stride * 4);
    amx::store<1>(last_.at[1], last_.stride * 4);
    amx::store<2>(last_.at[2], last_.stride * 4);
    amx::store<3>(last_.at[3], last_.stride * 4);
    last_ = {{nowhere_, nowhere_, nowhere_, nowhere_}, rows};
  }

 private:
  template <int Tile, bool Add>
  ATTNBENCH_INLINE void begin(const Square& c) {
    amx::store<Tile>(last_.at[Tile], last_.stride * 4);
    if constexpr (Add) {
      amx::load<Tile>(c.at[Tile], c.stride * 4);
    } else {
      amx::zero<Tile>();
    }
  }

  Square last_;
  float* nowhere_;
};

/// By AVX512_BF16: strips of 8 rows, whose 16 sums hide each other's latency and leave registers
/// for the two right sides and the pairs of the left one.
class VectorProducts {
  using S = Simd<float, 64>;

 public:
  explicit ATTNBENCH_INLINE VectorProducts(float*) {}

  /// As those of TileProducts.
  template <bool Add>
  ATTNBENCH_INLINE void square(std::int64_t blocks, const Bits* a, std::int64_t a_stride,
                               std::int64_t a_step, const Bits* b0, const Bits* b1,
                               std::int64_t b_step, const Square& c) {
    for (std::int64_t i = 0; i < 2 * rows; i += strip) {
      float* const to[2] = {c.at[i / rows * 2] + i % rows * c.stride,
                            c.at[i / rows * 2 + 1] + i % rows * c.stride};
      S::Vector sums[strip][2];
#pragma GCC unroll 8
      for (int r = 0; r < strip; ++r) {
        sums[r][0] = Add ? S::load(to[0] + r * c.stride) : S::broadcast(0);
        sums[r][1] = Add ? S::load(to[1] + r * c.stride) : S::broadcast(0);
      }
      for (std::int64_t l = 0; l < blocks; ++l) {
        const Bits* const left = a + i * a_stride + l * a_step;
        const Bits* const right[2] = {b0 + l * b_step * tile_numbers,
                                      b1 + l * b_step * tile_numbers};
        for (std::int64_t d = 0; d < depth; d += 2) {
          const Words first = load_words(right[0] + d * rows);
          const Words second = load_words(right[1] + d * rows);
#pragma GCC unroll 8
          for (int r = 0; r < strip; ++r) {
            const Words pair = broadcast_pair(left + r * a_stride + d);
            add_products(pair, first, sums[r][0]);
            add_products(pair, second, sums[r][1]);
          }
        }
      }
#pragma GCC unroll 8
      for (int r = 0; r < strip; ++r) {
        S::store(to[0] + r * c.stride, sums[r][0]);
        S::store(to[1] + r * c.stride, sums[r][1]);
      }
    }
  }
  ATTNBENCH_INLINE void sum_rows(std::int64_t blocks, const Bits* a, std::int64_t a_step,
                                 const Bits* /*ones*/, float* c) {
    const Words ones = Words{} + one;
    for (std::int64_t i = 0; i < 2 * rows; ++i) {
      S::Vector sum = S::load(c + i * rows);
      for (std::int64_t l = 0; l < blocks; ++l) {
        add_products(load_words(a + l * a_step + i * depth), ones, sum);
      }
      S::store(c + i * rows, sum);
    }
  }
  ATTNBENCH_INLINE void end() {}

 private:
  static constexpr int strip = 8;

  static ATTNBENCH_INLINE Words load_words(const Bits* from) {
    Words words;
    __builtin_memcpy(&words, from, sizeof words);
    return words;
  }
  static ATTNBENCH_INLINE Words broadcast_pair(const Bits* from) {
    std::uint32_t pair;
    __builtin_memcpy(&pair, from, sizeof pair);
    return Words(S::Integers{} + pair);
  }
};

#endif

}  // namespace attnbench::kernels::bfloat16
