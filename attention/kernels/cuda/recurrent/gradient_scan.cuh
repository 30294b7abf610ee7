// The backward pass of the recurrent families, token by token in fp32 on the CUDA cores: its
// products. With e, w and decay of each token (see recurrent_gradient_rows.cuh), S_t = decay_t
// S_{t-1} + e_t v_t^T and R_t = w_t g_t^T + decay_{t+1} R_{t+1},
//   X_t = S_t g_t,   Z_t = R_t v_t,   dLoss/dv_t = R_t^T e_t.
// All three are one scan: out_t[c] = sum_i read_t[i] M[i, c], M <- decay M + left_t[i] right_t[c].
// A warp holds four columns c, its lanes share the i.
#pragma once

#include "attention/kernels/cuda/recurrent/scan.cuh"

namespace attnbench::kernels::cuda {

/// `Inner` is the type of what is indexed by i, `Outer` of what is indexed by c.
template <class Inner, class Outer, class Out>
struct GradientScan {
  Rows<const Inner> read, left;
  Rows<const Outer> right;
  Rows<Out> out;
  const float* decay = nullptr;  ///< [batch, heads, length, of i or of c]; null: nothing decays
  bool decay_inner = false;      ///< by i, else by c
  bool reverse = false;          ///< from the last token to the first
  const std::uint8_t* read_mask = nullptr;  ///< where these are 0, `read` or `left` is
  const std::uint8_t* left_mask = nullptr;
  std::int64_t mask_stride = 0;
  int heads = 1, length = 0, inner = 0, outer = 0;
};

/// Grid [heads, outer / (scan_warps * scan_columns)]; shared memory of gradient_scan_bytes.
template <class Inner, class Outer, class Out, int Own>
__global__ void __launch_bounds__(32 * scan_warps, 1)
    gradient_scan(const GradientScan<Inner, Outer, Out> a) {
  constexpr int threads = 32 * scan_warps, columns = scan_warps * scan_columns;
  ATTNBENCH_SHARED(float, floats, 128);
  float* const reads = floats;                           // [scan_tokens, inner]
  float* const lefts = reads + scan_tokens * a.inner;    // [scan_tokens, inner]
  float* const rights = lefts + scan_tokens * a.inner;   // [scan_tokens, columns]
  float* const decays = rights + scan_tokens * columns;  // [scan_tokens, inner or columns]
  const int lane = threadIdx.x & 31, mine = static_cast<int>(threadIdx.x >> 5) * scan_columns;
  const std::int64_t head = blockIdx.x, b = head / a.heads, h = head % a.heads;
  const int column = static_cast<int>(blockIdx.y) * columns;
  const int decayed = a.decay_inner ? a.inner : a.outer;  // numbers of a row of a.decay
  const int decay_width = a.decay_inner ? a.inner : columns;
  const auto shown = [&](const std::uint8_t* mask, int t) {
    return mask == nullptr || mask[b * a.mask_stride + t] != 0;
  };
  float m[Own][scan_columns] = {};
  for (int begin = 0; begin < a.length; begin += scan_tokens) {
    const int rows = min(scan_tokens, a.length - begin);
    const auto token = [&](int i) { return a.reverse ? a.length - 1 - begin - i : begin + i; };
    __syncthreads();
    for (int i = threadIdx.x; i < rows * a.inner; i += threads) {
      const int t = token(i / a.inner), l = i % a.inner;
      reads[i] = shown(a.read_mask, t) ? widen_number(a.read.at(b, h, t)[l]) : 0.F;
      lefts[i] = shown(a.left_mask, t) ? widen_number(a.left.at(b, h, t)[l]) : 0.F;
    }
    for (int i = threadIdx.x; i < rows * columns; i += threads) {
      const int c = column + i % columns;
      rights[i] = c < a.outer ? widen_number(a.right.at(b, h, token(i / columns))[c]) : 0.F;
    }
    if (a.decay != nullptr) {
      for (int i = threadIdx.x; i < rows * decay_width; i += threads) {
        // Backwards, a token's memory is that of the next one, decayed by the next one's decay.
        const int t = token(i / decay_width) + (a.reverse ? 1 : 0);
        const int at = i % decay_width + (a.decay_inner ? 0 : column);
        const bool there = t < a.length && at < decayed;
        decays[i] = there ? a.decay[(head * a.length + t) * decayed + at] : 0.F;
      }
    }
    __syncthreads();
    for (int t = 0; t < rows; ++t) {
      float out[scan_columns] = {};
#pragma unroll
      for (int i = 0; i < Own; ++i) {
        const int l = lane + 32 * i;
        const bool there = l < a.inner;
        const float read = there ? reads[t * a.inner + l] : 0.F;
        const float left = there ? lefts[t * a.inner + l] : 0.F;
        const float own =
            there && a.decay != nullptr && a.decay_inner ? decays[t * a.inner + l] : 1.F;
#pragma unroll
        for (int j = 0; j < scan_columns; ++j) {
          const bool by_column = a.decay != nullptr && !a.decay_inner;
          const float decay = by_column ? decays[t * columns + mine + j] : own;
          m[i][j] = decay * m[i][j] + left * rights[t * columns + mine + j];
          out[j] += read * m[i][j];
        }
      }
#pragma unroll
      for (int j = 0; j < scan_columns; ++j) {
        const int c = column + mine + j;
        out[j] = warp_sum(out[j]);
        if (lane == j && c < a.outer) narrow_number(out[j], a.out.at(b, h, token(t))[c]);
      }
    }
  }
}

inline std::size_t gradient_scan_bytes(int inner) {
  constexpr int columns = scan_warps * scan_columns;
  const int decays = inner > columns ? inner : columns;
  return sizeof(float) * static_cast<std::size_t>(scan_tokens * (2 * inner + columns + decays));
}

}  // namespace attnbench::kernels::cuda
