// dM of the whole pool on the tensor cores, by segments of the queries: dM = P^T G. A block takes
// 64 latents and a segment, a warp 16 of the latents; its weights go from the queries' logits to
// the left operand in registers, since fragments of a tile may be taken transposed.
#pragma once

#include "attention/kernels/cuda/pool/grads.cuh"

namespace attnbench::kernels::cuda {

template <int Dim>
struct GradSumsLayout {
  static constexpr int logits = 0;
  static constexpr int rows = chunk_tokens * grad_latents * 2;
  static constexpr int stage = rows + chunk_tokens * Dim * 2;
  static constexpr int vectors = 2 * stage;  // [2 stages, 2, chunk_tokens]
  static constexpr int bytes = vectors + 2 * 2 * chunk_tokens * 4;
};

/// Grid [heads * padded / grad_latents, segments]. Where there is `a.rest`, its sums go to
/// to.total.
template <class T, int Dim>
__global__ void __launch_bounds__(grad_threads) pool_grad_sums(const PoolGrads<T> a) {
  using Layout = GradSumsLayout<Dim>;
  // Weights are at most 1: so raised, those of 2^-24 are normal numbers of fp16 yet.
  const float raise = Operand<T>::narrow && !a.given ? 0x1p10F : 1.F;
  ATTNBENCH_SHARED(unsigned char, memory, 128);
  const int groups = a.padded() / grad_latents, place = static_cast<int>(blockIdx.x);
  const int head = place / groups, l0 = place % groups * grad_latents;
  const int b = head / a.heads, h = head % a.heads;
  const int lane = static_cast<int>(threadIdx.x & 31), g = lane >> 2, c = lane & 3;
  const int column = static_cast<int>(threadIdx.x >> 5) * 16;  // the warp's latents
  const int segment = static_cast<int>(blockIdx.y), first = segment * a.segment_tokens;
  const int last = min(a.length, first + a.segment_tokens);
  const float shift[2] = {added(a, head, l0 + column + g), added(a, head, l0 + column + g + 8)};

  const auto load = [&](int t0, int stage) {
    unsigned char* const at = memory + stage * Layout::stage;
    const int count = min(chunk_tokens, last - t0);
    const std::uint64_t there = seen_rows(nullptr, count);
    fetch<grad_latents, grad_threads>(Tile<grad_latents>{at + Layout::logits},
                                      a.logits.at(b, h, t0) + l0, a.logits.row_stride,
                                      min(grad_latents, a.latents - l0), a.logit_pieces, there);
    fetch<Dim, grad_threads>(Tile<Dim>{at + Layout::rows}, a.rows.at(b, h, t0), a.rows.row_stride,
                             a.value_dim, a.row_pieces, there);
    commit_copies();
    if (!a.given && threadIdx.x < chunk_tokens) {
      const int t = static_cast<int>(threadIdx.x);
      const std::int64_t from = std::int64_t{head} * a.length + t0 + t;
      float* const to =
          reinterpret_cast<float*>(memory + Layout::vectors) + stage * 2 * chunk_tokens + t;
      to[0] = t < count ? a.top[from] : INFINITY;
      to[chunk_tokens] = t < count ? raise * a.factor[from] : 0.F;
    }
  };
  float o[Dim / 8][4] = {};
  if (first < last) load(first, 0);
  for (int t0 = first, stage = 0; t0 < last; t0 += chunk_tokens, stage ^= 1) {
    wait_copies<0>();
    __syncthreads();
    if (t0 + chunk_tokens < last) load(t0 + chunk_tokens, stage ^ 1);
    unsigned char* const at = memory + stage * Layout::stage;
    const Fragments<grad_latents> logits(Tile<grad_latents>{at + Layout::logits});
    const Fragments<Dim> rows(Tile<Dim>{at + Layout::rows});
    const float* const vectors =
        reinterpret_cast<const float*>(memory + Layout::vectors) + stage * 2 * chunk_tokens;
#pragma unroll
    for (int j = 0; j < chunk_tokens / 16; ++j) {
      Word weights[4];  // of 16 latents by 16 tokens
      logits.left_transposed(weights, 16 * j, column);
      if (!a.given) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int r = i & 1, token = 16 * j + 8 * (i >> 1) + 2 * c;
          const float2 top = *reinterpret_cast<const float2*>(vectors + token);
          const float2 factor = *reinterpret_cast<const float2*>(vectors + chunk_tokens + token);
          const float p0 =
              exp2_fast(fmaf(Operand<T>::low(weights[i]), a.scale, shift[r]) - top.x) * factor.x;
          const float p1 =
              exp2_fast(fmaf(Operand<T>::high(weights[i]), a.scale, shift[r]) - top.y) * factor.y;
          weights[i] = pack_pair<T>(p0, p1);
        }
      }
#pragma unroll
      for (int n = 0; n < Dim / 16; ++n) {
        Word right[4];
        rows.right_transposed(right, 16 * j, 16 * n);
        multiply_add<T>(o[2 * n], weights, right[0], right[1]);
        multiply_add<T>(o[2 * n + 1], weights, right[2], right[3]);
      }
    }
  }
  const float back = 1 / raise;
  const std::int64_t slot = std::int64_t{head} * a.segments + segment;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int l = l0 + column + g + 8 * r;
    if (l >= a.latents) continue;
    float* const to = a.to.sum + (slot * a.latents + l) * a.value_dim;
#pragma unroll
    for (int n = 0; n < Dim / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int d = 8 * n + 2 * c + i;
        if (d < a.value_dim) to[d] = back * o[n][2 * r + i];
      }
    }
  }
  const int l = l0 + static_cast<int>(threadIdx.x);
  if (a.rest == nullptr || threadIdx.x >= grad_latents || l >= a.latents) return;
  const int tiles = (a.length + chunk_tokens - 1) / chunk_tokens;
  float total = 0;
  for (int tile = first / chunk_tokens; tile * chunk_tokens < last; ++tile) {
    total += a.rest[(std::int64_t{head} * tiles + tile) * a.latents + l];
  }
  a.to.total[slot * a.latents + l] = total;
}

}  // namespace attnbench::kernels::cuda
