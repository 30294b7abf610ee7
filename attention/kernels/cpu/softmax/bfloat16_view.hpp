// Which keys of a tile 32 queries see, and how the others are hidden: among scores, or among
// weights in words, whose pairs are 16 keys apart.
#pragma once

#include "attention/kernels/cpu/softmax/bfloat16_units.hpp"

namespace attnbench::kernels::bfloat16 {

#if defined(__x86_64__)

/// What hides keys of one tile from the queries of an item.
struct View {
  const SoftmaxSizes& sizes;
  const std::uint8_t* mask;  // of the tile's keys, or null
  std::int64_t t0, s0, keys;

  std::int64_t last_of(std::int64_t i) const { return std::min(t0 + i + block, sizes.length) - 1; }
  /// The keys, in whole blocks, that any of 32 queries from i on sees.
  Range columns_of(std::int64_t i) const {
    const Range seen = within(seen_keys(sizes, t0 + i, last_of(i) - t0 - i + 1), s0, keys);
    if (seen.empty()) return {0, 0};
    return {seen.begin / block * block, rounded(seen.end, block)};
  }
  /// Whether each of 32 queries sees each of these keys.
  bool inside(std::int64_t i, const Range& columns) const {
    return mask == nullptr && sizes.first_key(last_of(i)) <= s0 + columns.begin &&
           sizes.last_key(t0 + i) >= s0 + columns.end - 1;
  }
  /// The keys that one query sees, but for the mask.
  Range seen_by(std::int64_t i) const {
    return within(seen_keys(sizes, std::min(t0 + i, sizes.length - 1), 1), s0, keys);
  }
};

/// Minus infinity where a query of the block does not see a key.
ATTNBENCH_INLINE void hide_scores(const View& view, std::int64_t i0, Range columns, float* scores,
                                  std::int64_t stride) {
  constexpr float hidden = -std::numeric_limits<float>::infinity();
  if (view.inside(i0, columns)) return;
  for (std::int64_t i = 0; i < block; ++i) {
    float* const row = scores + i * stride;
    Range seen = view.seen_by(i0 + i);
    if (seen.empty()) seen = {columns.end, columns.end};
    std::fill(row + columns.begin, row + std::max(columns.begin, seen.begin), hidden);
    for (std::int64_t k = seen.begin; view.mask != nullptr && k < seen.end; ++k) {
      row[k] = view.mask[k] != 0 ? row[k] : hidden;
    }
    std::fill(row + std::min(columns.end, seen.end), row + columns.end, hidden);
  }
}

using Integers = Simd<float, 64>::Integers;
constexpr std::int64_t lanes = Simd<float, 64>::lanes;

/// The keys among the 32 from k0 on that the mask leaves, j and j + 16 in one lane.
ATTNBENCH_INLINE Integers unmasked(const View& view, std::int64_t k0) {
  Integers there = Integers{} - 1;
  if (view.mask == nullptr) return there;
  const auto bits_of = [&](std::int64_t k) {
    return k < view.keys && view.mask[k] != 0 ? 0xFFFFU : 0U;
  };
  for (int j = 0; j < lanes; ++j) {
    there[j] = bits_of(k0 + j) | bits_of(k0 + j + lanes) << 16;
  }
  return there;
}

/// For each place of 32 keys ones where a key lies there or behind it, j and j + 16 in one lane.
struct Behind {
  alignas(64) std::uint32_t words[block + 1][lanes];

  Behind() {
    for (int place = 0; place <= block; ++place) {
      for (int j = 0; j < lanes; ++j) {
        words[place][j] = (j >= place ? 0xFFFFU : 0U) | (j + lanes >= place ? 0xFFFF0000U : 0U);
      }
    }
  }
  ATTNBENCH_INLINE Integers from(std::int64_t place) const {
    Integers found;
    __builtin_memcpy(&found, words[place], sizeof found);
    return found;
  }
};

/// 0 where a query of a unit does not see a key.
ATTNBENCH_INLINE void hide_weights(const View& view, const Behind& behind, const Unit& unit,
                                   Bits* weights) {
  const SoftmaxSizes& sizes = view.sizes;
  for (std::int64_t k0 = unit.keys.begin; k0 < unit.keys.end; k0 += block) {
    Bits* row = weights + (k0 - unit.keys.begin) * block;
    if (view.inside(unit.query, {k0, k0 + block})) continue;
    const auto there = unmasked(view, k0);
    const std::int64_t opposite = view.t0 + unit.query + sizes.offset - view.s0 - k0;
    const std::int64_t first = opposite - sizes.left;
    const std::int64_t last = opposite + sizes.right + 1;
    const std::int64_t count = std::min(block, view.keys - k0);
    for (std::int64_t i = 0; i < block; ++i, row += block) {
      const auto begin = behind.from(std::clamp<std::int64_t>(first + i, 0, block));
      const auto end = behind.from(std::clamp<std::int64_t>(last + i, 0, count));
      Integers words;
      __builtin_memcpy(&words, row, sizeof words);
      words &= there & begin & ~end;
      __builtin_memcpy(row, &words, sizeof words);
    }
  }
}

#endif

}  // namespace attnbench::kernels::bfloat16
