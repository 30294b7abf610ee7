// What the softmax kernels are given, in 32 bits where that is enough, and the kernels of the
// family. Inside the family only; plain C++, tested without a device.
#pragma once

#include <algorithm>
#include <cmath>

#include "attention/kernels/cuda/device.hpp"
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

  constexpr bool sees(int t, int s) const {
    return s >= t + lower && s < t + upper && s < key_length;
  }
  /// The keys that any of the queries from t0 up to `t1` sees, t0 < t1 <= length.
  constexpr Range keys(int t0, int t1) const {
    return {greater(0, t0 + lower), lesser(key_length, t1 - 1 + upper)};
  }
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

/// The rows of queries that the gradients' kernels count in.
inline std::int64_t padded_length(const SoftmaxSizes& sizes) {
  return (sizes.length + 127) / 128 * 128;
}

struct SoftmaxShape {
  Band band;
  int batch = 1;
  int heads = 1;
  int kv_heads = 1;
  int group = 1;  ///< query heads of one key head
  int head_dim = 0;
  int value_dim = 0;
  float factor = 1;     ///< the logit's factor
  float magnitude = 1;  ///< its size times log2(e), never 0
  float scale = 1;      ///< the same with its sign

  SoftmaxShape() = default;
  explicit SoftmaxShape(const SoftmaxSizes& sizes)
      : band(sizes),
        batch(static_cast<int>(sizes.batch)),
        heads(static_cast<int>(sizes.heads)),
        kv_heads(static_cast<int>(sizes.kv_heads)),
        group(static_cast<int>(sizes.heads / sizes.kv_heads)),
        head_dim(static_cast<int>(sizes.head_dim)),
        value_dim(static_cast<int>(sizes.value_dim)),
        factor(static_cast<float>(sizes.scale)),
        // A factor of 0 would turn the minus infinity of a hidden key into NaN.
        magnitude(
            static_cast<float>(std::fmax(std::fabs(sizes.scale) * 1.4426950408889634, 1e-30))),
        scale(sizes.scale < 0 ? -magnitude : magnitude) {}
};

/// A forward pass.
template <class T>
struct SoftmaxCall {
  SoftmaxArguments<T> arrays;
  SoftmaxShape shape;
};

/// A backward pass. A query's two numbers lie at head * padded_length + t; past `length` lse is
/// +infinity, so that every weight there is 0.
template <class T>
struct SoftmaxBackwardCall {
  SoftmaxArguments<T> arrays;
  SoftmaxShape shape;
  SoftmaxGradients<T> gradients;
  int padded_length = 0;
  float* lse = nullptr;    ///< times log2(e)
  float* delta = nullptr;  ///< sum over the value's columns of d_out * out
};

/// The mask of batch row b, or null where all keys are real.
template <class T>
constexpr const std::uint8_t* key_mask(const SoftmaxArguments<T>& arrays, int b) {
  return arrays.key_mask == nullptr ? nullptr : arrays.key_mask + b * arrays.mask_stride;
}

// The kernels take any sizes that softmax_refusal lets pass, batch > 0; the forward ones and
// softmax_delta, length > 0.

/// plain.cu: any width, any rows, any type, in float.
template <class T>
void softmax_forward_plain(const SoftmaxCall<T>& call, Stream stream);
/// Writes call.lse and call.delta, which the gradients' kernels read.
template <class T>
void softmax_delta(const SoftmaxBackwardCall<T>& call, Stream stream);
template <class T>
void softmax_backward_plain(const SoftmaxBackwardCall<T>& call, Stream stream);

/// forward_mma.cu and backward_mma.cu: on the tensor cores, T = BFloat16 or Half. They queue
/// nothing and return false where rows are wider than 128 columns, do not begin on 16 bytes or do
/// not hold a multiple of 8 numbers.
template <class T>
bool softmax_forward_mma(const SoftmaxCall<T>& call, Stream stream);
template <class T>
bool softmax_backward_mma(const SoftmaxBackwardCall<T>& call, Stream stream);

}  // namespace attnbench::kernels::cuda
