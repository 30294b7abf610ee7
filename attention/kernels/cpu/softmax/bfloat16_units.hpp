// What the forward pass does where it knows beforehand that no score is out of reach of a word's
// fixed point: no maximum is sought, and nothing that has been summed up decays.
//
// Work comes in units of 32 queries and the keys of a tile that they see. AMX multiplies tiles by a
// unit of their own, in 16 cycles each, which leaves the vectors' ports free but for one of two
// that multiply: so the instructions of both lie near each other.
#pragma once

#include "attention/kernels/cpu/softmax/bfloat16_products.hpp"
#include "attention/kernels/cpu/softmax/bfloat16_weights.hpp"

namespace attnbench::kernels::bfloat16 {

constexpr std::int64_t block = 32;  ///< tokens taken together: two tiles of rows, one of depth

#if defined(__x86_64__)

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
  const Bits* ones;  ///< a right side with ones in its first column
  float *out, *sums;
};

/// Little enough to stay in the first cache beside what units are multiplied with.
struct UnitScratch {
  static constexpr std::int64_t numbers = block * block;  // of one block of scores
  float* scores;                                          ///< [2, 32, 32]: of two blocks of keys
  Bits* weights;                                          ///< [key tile / 32, 32, 32]
};

/// The products of units. Scores of each 32 keys are multiplied before the weights of the 32 keys
/// before them are computed, so that both run beside each other. `hide(unit, weights)` clears the
/// weights of hidden keys in [blocks, 32, 32].
template <class Products, class Hide>
ATTNBENCH_INLINE void take_units(Products& products, const Unit* units, std::int64_t count,
                                 const UnitSides& s, const UnitScratch& scratch,
                                 const Powers& powers, const Hide& hide) {
  const std::int64_t key_blocks = s.dim / depth;
  const std::int64_t value_blocks = s.value_dim / depth;
  std::int64_t side = 0;
  const auto score = [&](const Unit& unit, std::int64_t key) ATTNBENCH_INLINE_LAMBDA {
    const Bits* const right = s.keys + key / rows * key_blocks * tile_numbers;
    products.template square<false>(
        key_blocks, s.q + unit.query * s.dim, s.dim, depth, right,
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
    products.sum_rows(blocks, scratch.weights, UnitScratch::numbers, s.ones,
                      s.sums + unit->query * rows);
    for (std::int64_t d = 0; d < value_blocks; ++d) {
      const Bits* const right =
          s.values + (unit->keys.begin / block * value_blocks + d) * 2 * tile_numbers;
      products.template square<true>(
          blocks, scratch.weights, depth, UnitScratch::numbers, right, right + tile_numbers,
          2 * value_blocks, Square::of(s.out + unit->query * s.value_dim + d * depth, s.value_dim));
    }
  }
  products.end();
}

#endif

}  // namespace attnbench::kernels::bfloat16
