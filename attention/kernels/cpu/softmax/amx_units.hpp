// What the forward pass on AMX does where it knows beforehand that no score is out of reach of a
// word's fixed point: no maximum is sought, and nothing that has been summed up decays.
//
// Work comes in units of 32 queries and the keys of a tile that they see. Tiles are multiplied by a
// unit of their own, in 16 cycles each, which leaves the vectors' ports free but for one of two
// that multiply: so the instructions of both lie near each other.
#pragma once

#include "attention/kernels/cpu/softmax/amx_weights.hpp"

namespace attnbench::kernels::amx {

constexpr std::int64_t block = 32;  ///< tokens taken together: two tiles of rows, one of depth

#if defined(__x86_64__)

/// Four tiles of sums, and where they go.
struct Square {
  float* at[4];
  std::int64_t stride;  // in numbers

  static Square of(float* c, std::int64_t stride) {
    return {{c, c + rows, c + rows * stride, c + rows * stride + rows}, stride};
  }
};

/// Products of tiles one after the other. Sums are stored while the next ones are begun: a tile
/// that was just multiplied is not there yet, and waiting for it would stop the unit.
class Products {
 public:
  /// What was not asked for is stored in `nowhere`, [16, 16].
  explicit ATTNBENCH_INLINE Products(float* nowhere)
      : last_{{nowhere, nowhere, nowhere, nowhere}, rows}, nowhere_(nowhere) {}

  /// As multiply_square, where the next tiles of a are `a_step` numbers further.
  template <bool Add>
  ATTNBENCH_INLINE void square(std::int64_t blocks, const Bits* a, std::int64_t a_stride,
                               std::int64_t a_step, const Bits* b0, const Bits* b1,
                               std::int64_t b_step, const Square& c) {
    const std::int64_t a_bytes = a_stride * 2;
    for (std::int64_t l = 0; l < blocks; ++l) {
      const bool first = l == 0;
      load<4>(a + l * a_step, a_bytes);
      load<6>(b0 + l * b_step * tile_numbers, 64);
      if (first) begin<0, Add>(c);
      multiply<0, 4, 6>();
      load<7>(b1 + l * b_step * tile_numbers, 64);
      if (first) begin<1, Add>(c);
      multiply<1, 4, 7>();
      load<5>(a + rows * a_stride + l * a_step, a_bytes);
      if (first) begin<2, Add>(c);
      multiply<2, 5, 6>();
      if (first) begin<3, Add>(c);
      multiply<3, 5, 7>();
    }
    last_ = c;
  }
  /// C[32, 16] += A B, b being one tile for all `blocks` of depth.
  ATTNBENCH_INLINE void column(std::int64_t blocks, const Bits* a, std::int64_t a_step,
                               const Bits* b, float* c) {
    const Square sums{{c, c + tile_floats, nowhere_, nowhere_}, rows};
    load<6>(b, 64);
    begin<0, true>(sums);
    begin<1, true>(sums);
    for (std::int64_t l = 0; l < blocks; ++l) {
      load<4>(a + l * a_step, 64);
      multiply<0, 4, 6>();
      load<5>(a + l * a_step + tile_numbers, 64);
      multiply<1, 5, 6>();
    }
    store<2>(last_.at[2], last_.stride * 4);
    store<3>(last_.at[3], last_.stride * 4);
    last_ = sums;
  }
  /// Stores what is left.
  ATTNBENCH_INLINE void end() {
    store<0>(last_.at[0], last_.stride * 4);
    store<1>(last_.at[1], last_.stride * 4);
    store<2>(last_.at[2], last_.stride * 4);
    store<3>(last_.at[3], last_.stride * 4);
    last_ = {{nowhere_, nowhere_, nowhere_, nowhere_}, rows};
  }

 private:
  static constexpr std::int64_t tile_floats = rows * rows;

  template <int Tile, bool Add>
  ATTNBENCH_INLINE void begin(const Square& c) {
    store<Tile>(last_.at[Tile], last_.stride * 4);
    if constexpr (Add) {
      load<Tile>(c.at[Tile], c.stride * 4);
    } else {
      zero<Tile>();
    }
  }

  Square last_;
  float* nowhere_;
};

/// Some keys of a tile against 32 queries of an item.
struct Unit {
  std::int64_t query;  ///< the first, counted from the item's first one
  Range keys;          ///< of the tile, in whole blocks
  bool edge;           ///< some keys are hidden from some of the queries
};

/// What units are multiplied with, and sum up.
struct UnitSides {
  std::int64_t dim, value_dim;  ///< padded
  const Bits *q, *keys, *values;
  const Bits* ones;  ///< a right side that sums up rows in its first column
  float *out, *sums;
};

/// Little enough to stay in the first cache beside what units are multiplied with.
struct UnitScratch {
  static constexpr std::int64_t numbers = block * block;  // of one block of scores
  float* scores;                                          ///< [2, 32, 32]: of two blocks of keys
  Bits* weights;                                          ///< [key tile / 32, 32, 32]
  float* nowhere;                                         ///< [16, 16]
};

/// The products of units. Scores of each 32 keys are multiplied before the weights of the 32 keys
/// before them are computed, so that both run beside each other. `hide(unit, weights)` clears the
/// weights of hidden keys in [blocks, 32, 32].
template <class Hide>
ATTNBENCH_INLINE void take_units(const Unit* units, std::int64_t count, const UnitSides& s,
                                 const UnitScratch& scratch, const Powers& powers,
                                 const Hide& hide) {
  const std::int64_t key_blocks = s.dim / depth;
  const std::int64_t value_blocks = s.value_dim / depth;
  Products products(scratch.nowhere);
  std::int64_t side = 0;
  const auto score = [&](const Unit& unit, std::int64_t key) ATTNBENCH_INLINE_LAMBDA {
    const Bits* const right = s.keys + key / rows * key_blocks * tile_numbers;
    products.square<false>(key_blocks, s.q + unit.query * s.dim, s.dim, depth, right,
                           right + key_blocks * tile_numbers, 1,
                           Square::of(scratch.scores + side * UnitScratch::numbers, block));
    side ^= 1;
  };
  if (count > 0) score(units[0], units[0].keys.begin);
  for (const Unit* unit = units; unit != units + count; ++unit) {
    Bits* to = scratch.weights;
    for (std::int64_t key = unit->keys.begin; key < unit->keys.end; key += block) {
      const float* from = scratch.scores + (side ^ 1) * UnitScratch::numbers;
      if (key + block < unit->keys.end) {
        score(*unit, key + block);
      } else if (unit + 1 != units + count) {
        score(unit[1], unit[1].keys.begin);
      } else {
        products.end();
      }
#pragma GCC unroll 4
      for (std::int64_t i = 0; i < block; ++i, from += block, to += block) {
        const Words weights = powers.of(from);
        __builtin_memcpy(to, &weights, sizeof weights);
      }
    }
    if (unit->edge) hide(*unit, scratch.weights);
    const std::int64_t blocks = (unit->keys.end - unit->keys.begin) / block;
    products.column(blocks, scratch.weights, UnitScratch::numbers, s.ones,
                    s.sums + unit->query * rows);
    for (std::int64_t d = 0; d < value_blocks; ++d) {
      const Bits* const right =
          s.values + (unit->keys.begin / block * value_blocks + d) * 2 * tile_numbers;
      products.square<true>(blocks, scratch.weights, depth, UnitScratch::numbers, right,
                            right + tile_numbers, 2 * value_blocks,
                            Square::of(s.out + unit->query * s.value_dim + d * depth, s.value_dim));
    }
  }
  products.end();
}

#endif

}  // namespace attnbench::kernels::amx
