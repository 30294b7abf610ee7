// The band of keys that queries see, in 32 bits, and the tiles it touches. Plain arithmetic, for
// the host and the device alike.
#pragma once

#include <algorithm>

#include "attention/kernels/softmax.hpp"

namespace attnbench::kernels::cuda {

/// From `begin` up to, not including, `end`; empty where end <= begin.
struct Range {
  int begin = 0;
  int end = 0;
};

/// Query t sees the keys s, 0 <= s < key_length, with t + lower <= s < t + upper.
struct Band {
  int length = 0;
  int key_length = 0;
  int lower = 0;
  int upper = 0;

  Band() = default;
  /// Sides past every key are cut to where they change nothing, so that sums stay within 32 bits.
  explicit constexpr Band(const SoftmaxSizes& sizes)
      : length(static_cast<int>(sizes.length)), key_length(static_cast<int>(sizes.key_length)) {
    const auto cut = [&](std::int64_t x) {
      return static_cast<int>(std::clamp<std::int64_t>(x, -sizes.length, sizes.key_length));
    };
    lower = cut(sizes.offset - sizes.left);
    upper = cut(sizes.offset + sizes.right + 1);
  }

  static constexpr int lesser(int a, int b) { return a < b ? a : b; }
  static constexpr int greater(int a, int b) { return a < b ? b : a; }

  constexpr int first_key(int t) const { return greater(0, t + lower); }
  constexpr int end_key(int t) const { return lesser(key_length, t + upper); }
  constexpr bool sees(int t, int s) const {
    return s >= t + lower && s < t + upper && s < key_length;
  }

  /// The keys that any of the queries from t0 up to `t1` sees, t0 < t1 <= length.
  constexpr Range keys(int t0, int t1) const { return {first_key(t0), end_key(t1 - 1)}; }
  /// The queries that see any of the keys from s0 up to `s1`, s0 < s1 <= key_length.
  constexpr Range queries(int s0, int s1) const {
    return {greater(0, s0 - upper + 1), lesser(length, s1 - lower)};
  }
  /// Whether every query from t0 up to t1 sees every key from s0 up to s1.
  constexpr bool full(int t0, int t1, int s0, int s1) const {
    return s0 >= t1 - 1 + lower && s1 <= t0 + upper && s1 <= key_length;
  }
  constexpr bool none(int t0, int t1, int s0, int s1) const {
    return s1 <= t0 + lower || s0 >= t1 - 1 + upper || s0 >= key_length;
  }
};

/// One of the `blocks` tiles of one of the `heads`.
struct Place {
  int head = 0;
  int block = 0;
};

/// The order of tiles: sixteen heads at a time, so that those under way share keys in the L2 cache;
/// among these, first the first tile of each, then the second. With unequal tiles the longest are
/// first, and even shares follow.
constexpr Place place(int index, int heads, int blocks) {
  constexpr int section = 16;
  const int first = index / (section * blocks) * section;
  const int count = Band::lesser(section, heads - first);
  const int rest = index - first * blocks;
  return {first + rest % count, rest / count};
}

/// The tiles of `size` that a range touches.
constexpr Range tiles(const Range& range, int size) {
  if (range.end <= range.begin) return {};
  return {range.begin / size, (range.end + size - 1) / size};
}

}  // namespace attnbench::kernels::cuda
