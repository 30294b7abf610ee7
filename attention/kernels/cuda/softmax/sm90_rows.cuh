// The online softmax on the accumulators of a warpgroup (wgmma.cuh says which thread holds what):
// two rows a thread, the four threads of a quad share a row. Milakov and Gimelshein 2018.
#pragma once

#include <cstdint>

#include "attention/kernels/cuda/mma_sm80.cuh"
#include "attention/kernels/rows.hpp"

namespace attnbench::kernels::cuda::sm90 {

__device__ __forceinline__ float greatest_of_quad(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffu, x, 2));
}

__device__ __forceinline__ float sum_of_quad(float x) {
  x += __shfl_xor_sync(0xffffffffu, x, 1);
  return x + __shfl_xor_sync(0xffffffffu, x, 2);
}

/// Scores of keys after `last` (counted from the thread's first column, one for each row) become
/// -infinity.
template <int kCount>
__device__ __forceinline__ void hide_after(float (&scores)[kCount], int last0, int last1) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int column = i / 4 * 8 + i % 2;
    if (column > (i % 4 < 2 ? last0 : last1)) scores[i] = -INFINITY;
  }
}
template <int kCount>
__device__ __forceinline__ void hide_before(float (&scores)[kCount], int first0, int first1) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    const int column = i / 4 * 8 + i % 2;
    if (column < (i % 4 < 2 ? first0 : first1)) scores[i] = -INFINITY;
  }
}

/// What is known of two rows: the greatest score so far, and the sum of exponentials against it
/// over the thread's own columns.
struct OnlineSoftmax {
  float greatest[2] = {-INFINITY, -INFINITY};
  float sum[2] = {0, 0};

  /// Scores become exponentials, to base 2 after multiplication by `scale`. Sets `rescale` to what
  /// everything summed up so far must be multiplied by.
  template <int kCount>
  __device__ __forceinline__ void take(float (&scores)[kCount], float scale, float (&rescale)[2]) {
    float top[4] = {scores[0], scores[1], scores[2], scores[3]};
#pragma unroll
    for (int i = 4; i < kCount; ++i) top[i % 4] = fmaxf(top[i % 4], scores[i]);
    float base[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float now = fmaxf(greatest[r], greatest_of_quad(fmaxf(top[2 * r], top[2 * r + 1])));
      // A row that saw no key yet: against any finite base its exponentials are 0, not NaN.
      base[r] = now == -INFINITY ? 0 : now * scale;
      rescale[r] = exp2_fast(greatest[r] * scale - base[r]);
      greatest[r] = now;
    }
    float sums[4] = {0, 0, 0, 0};
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      scores[i] = exp2_fast(scores[i] * scale - base[i % 4 / 2]);
      sums[i % 4] += scores[i];
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) sum[r] = sum[r] * rescale[r] + (sums[2 * r] + sums[2 * r + 1]);
  }
};

template <int kCount>
__device__ __forceinline__ void multiply_rows(float (&x)[kCount], const float (&by)[2]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) x[i] *= by[i % 4 / 2];
}

/// Accumulators as operand A of the next product.
template <class T, int kCount>
__device__ __forceinline__ void pack(const float (&x)[kCount], std::uint32_t (&to)[kCount / 2]) {
#pragma unroll
  for (int i = 0; i < kCount / 2; ++i) to[i] = pack_pair<T>(x[2 * i], x[2 * i + 1]);
}

/// Writes the rows at `to` (one pointer for each of the thread's two rows, null = not to be
/// written) with 16 bytes a thread: the quad trades its 4-byte pieces, a 4 x 4 transposition.
template <class T, int kCount>
__device__ __forceinline__ void write_rows(const float (&x)[kCount], T* const (&to)[2]) {
  const int lane = threadIdx.x % 4;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int group = 0; group < kCount / 16; ++group) {
      std::uint32_t piece[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = 16 * group + 4 * i + 2 * r;
        piece[i] = pack_pair<T>(x[at], x[at + 1]);
      }
#pragma unroll
      for (int bit = 1; bit < 4; bit *= 2) {
        const bool upper = (lane & bit) != 0;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          if ((i & bit) != 0) continue;
          const std::uint32_t mine = upper ? piece[i] : piece[i + bit];
          const std::uint32_t theirs = __shfl_xor_sync(0xffffffffu, mine, bit);
          if (upper) {
            piece[i] = theirs;
          } else {
            piece[i + bit] = theirs;
          }
        }
      }
      if (to[r] != nullptr) {
        *reinterpret_cast<uint4*>(to[r] + 32 * group + 8 * lane) =
            make_uint4(piece[0], piece[1], piece[2], piece[3]);
      }
    }
  }
}

}  // namespace attnbench::kernels::cuda::sm90
