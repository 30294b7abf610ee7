// Gradients of the whole pool by rows: a block takes 64 tokens, a warp 16 of them, and goes through
// the latents. Of queries X = g M^T and dq = p (X - g.y), for which a first walk finds the row's
// maximum, its sum and g.y = sum p X; of keys Z = v dM^T, dk = w (Z - u) and dv = w dM, w going
// from accumulators to the left operand of that product.
#pragma once

#include "attention/kernels/cuda/pool/grads.cuh"

namespace attnbench::kernels::cuda {

template <int Dim>
struct GradRowsLayout {
  static constexpr int rows = 0;  // results' gradients, or values
  static constexpr int matrix = chunk_tokens * Dim * 2;
  static constexpr int logits = grad_latents * Dim * 2;  // within a stage
  static constexpr int stage = logits + chunk_tokens * grad_latents * 2;
  static constexpr int vectors = matrix + 2 * stage;               // [2 stages, 4, grad_latents]
  static constexpr int sums = vectors + 2 * 4 * grad_latents * 4;  // [4 warps, grad_latents]
  static constexpr int bytes = sums + 4 * grad_latents * 4;
};

/// Grid [heads, tiles of tokens or fewer].
template <class T, int Dim, bool Keys>
__global__ void __launch_bounds__(grad_threads) pool_grad_rows(const PoolGrads<T> a) {
  using Layout = GradRowsLayout<Dim>;
  using N = Operand<T>;
  ATTNBENCH_SHARED(unsigned char, memory, 128);
  const int head = static_cast<int>(blockIdx.x), b = head / a.heads, h = head % a.heads;
  const int lane = static_cast<int>(threadIdx.x & 31), g = lane >> 2, c = lane & 3;
  const int warp_row = static_cast<int>(threadIdx.x >> 5) * 16, mine = warp_row + g;  // and + 8
  const int padded = a.padded();
  const Tile<Dim> rows{memory + Layout::rows};
  float* const sums = reinterpret_cast<float*>(memory + Layout::sums);
  const T* const matrix = a.matrix + std::int64_t{head} * padded * Dim;
  const float* const units = a.units + std::int64_t{head} * padded;

  // The unit of w dM, which is that of its greatest factor: fp16 holds w over no other.
  float whole = 0;
  if constexpr (Keys) {
    for (int l = lane; l < a.latents; l += 32) {
      whole = fmaxf(whole, a.gain[std::int64_t{head} * a.latents + l] * units[l]);
    }
    whole = warp_greatest(whole);
    whole = __uint_as_float(min(max(__float_as_uint(whole) >> 23, 1U), 253U) << 23);
  }
  const float over = __uint_as_float((254U << 23) - __float_as_uint(whole));

  const int tiles = (a.length + chunk_tokens - 1) / chunk_tokens;
  for (int tile = static_cast<int>(blockIdx.y); tile < tiles; tile += static_cast<int>(gridDim.y)) {
    const int t0 = tile * chunk_tokens, count = min(chunk_tokens, a.length - t0);
    const std::uint8_t* const mask = a.mask == nullptr ? nullptr : a.mask + b * a.mask_stride + t0;
    const std::uint64_t seen = seen_rows(mask, count);
    const auto load = [&](int l0, int stage) {
      unsigned char* const at = memory + Layout::matrix + stage * Layout::stage;
      fetch<Dim, grad_threads>(Tile<Dim>{at}, matrix + std::int64_t{l0} * Dim, Dim, Dim, true,
                               ~std::uint64_t{0});
      fetch<grad_latents, grad_threads>(Tile<grad_latents>{at + Layout::logits},
                                        a.logits.at(b, h, t0) + l0, a.logits.row_stride,
                                        min(grad_latents, a.latents - l0), a.logit_pieces, seen);
      commit_copies();
      float* const to = reinterpret_cast<float*>(memory + Layout::vectors) +
                        stage * 4 * grad_latents + threadIdx.x;
      if (threadIdx.x < grad_latents) {
        const int l = l0 + static_cast<int>(threadIdx.x);
        const std::int64_t from = std::int64_t{head} * a.latents + l;
        to[0] = added(a, head, l);
        to[grad_latents] = units[l];
        if constexpr (Keys) {
          to[2 * grad_latents] = l < a.latents ? a.gain[from] : 0.F;
          to[3 * grad_latents] = l < a.latents ? a.less[from] : 0.F;
        }
      }
    };
    __syncthreads();  // all have done with the tile before
    fetch<Dim, grad_threads>(rows, a.rows.at(b, h, t0), a.rows.row_stride, a.value_dim,
                             a.row_pieces, seen);
    Word left[Dim / 16][4];
    float o[Keys ? Dim / 8 : 1][4] = {};
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {}, dot[2] = {};
    const auto walk = [&](auto&& take) {  // take(x, stage, l0) of all latents
      load(0, 0);
      for (int l0 = 0, stage = 0; l0 < padded; l0 += grad_latents, stage ^= 1) {
        wait_copies<0>();
        __syncthreads();
        if (l0 + grad_latents < padded) load(l0 + grad_latents, stage ^ 1);
        if (l0 == 0) {
#pragma unroll
          for (int k = 0; k < Dim / 16; ++k) Fragments<Dim>(rows).left(left[k], warp_row, 16 * k);
        }
        const Fragments<Dim> right_side(Tile<Dim>{memory + Layout::matrix + stage * Layout::stage});
        float x[grad_latents / 8][4] = {};
#pragma unroll
        for (int k = 0; k < Dim / 16; ++k) {
#pragma unroll
          for (int n = 0; n < grad_latents / 16; ++n) {
            Word right[4];
            right_side.right(right, 16 * n, 16 * k);
            multiply_add<T>(x[2 * n], left[k], right[0], right[1]);
            multiply_add<T>(x[2 * n + 1], left[k], right[2], right[3]);
          }
        }
        take(x, stage, l0);
      }
      __syncthreads();  // before the stages are loaded anew
    };
    const auto logits_of = [&](int stage) {
      return Tile<grad_latents>{memory + Layout::matrix + stage * Layout::stage + Layout::logits};
    };
    const auto vector_of = [&](int stage, int which, int n) {
      return *reinterpret_cast<const float2*>(
          reinterpret_cast<const float*>(memory + Layout::vectors) +
          (stage * 4 + which) * grad_latents + 8 * n + 2 * c);
    };
    const auto store = [&](int stage, int l0) {
      __syncthreads();
      store_rows<grad_latents, grad_threads>(
          logits_of(stage), a.d_logits.at(b, h, t0) + l0, a.d_logits.row_stride,
          min(grad_latents, a.latents - l0), a.d_logit_pieces, 0, count);
    };
    if constexpr (Keys) {
      const bool real0 = has(seen, mine), real1 = has(seen, mine + 8);
      walk([&](float(&x)[grad_latents / 8][4], int stage, int l0) {
        const Tile<grad_latents> logits = logits_of(stage);
#pragma unroll
        for (int n = 0; n < grad_latents / 8; ++n) {
          const float2 shift = vector_of(stage, 0, n), unit = vector_of(stage, 1, n);
          const float2 gain = vector_of(stage, 2, n), less = vector_of(stage, 3, n);
          float d[4];
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            const Word pair = logits.pair(mine + 8 * r, 8 * n + 2 * c);
            const bool real = r == 0 ? real0 : real1;
            const float w0 = exp2_fast(fmaf(N::low(pair), a.scale, shift.x)) * gain.x;
            const float w1 = exp2_fast(fmaf(N::high(pair), a.scale, shift.y)) * gain.y;
            d[2 * r] = a.grad_scale * w0 * fmaf(unit.x, x[n][2 * r], -less.x);
            d[2 * r + 1] = a.grad_scale * w1 * fmaf(unit.y, x[n][2 * r + 1], -less.y);
            x[n][2 * r] = real ? w0 * (unit.x * over) : 0.F;
            x[n][2 * r + 1] = real ? w1 * (unit.y * over) : 0.F;
            logits.pair(mine + 8 * r, 8 * n + 2 * c) =
                real ? pack_pair<T>(d[2 * r], d[2 * r + 1]) : 0;
          }
        }
        const Fragments<Dim> right_side(Tile<Dim>{memory + Layout::matrix + stage * Layout::stage});
#pragma unroll
        for (int k = 0; k < grad_latents / 16; ++k) {
          const Word weights[4] = {pack_pair<T>(x[2 * k][0], x[2 * k][1]),
                                   pack_pair<T>(x[2 * k][2], x[2 * k][3]),
                                   pack_pair<T>(x[2 * k + 1][0], x[2 * k + 1][1]),
                                   pack_pair<T>(x[2 * k + 1][2], x[2 * k + 1][3])};
#pragma unroll
          for (int n = 0; n < Dim / 16; ++n) {
            Word right[4];
            right_side.right_transposed(right, 16 * k, 16 * n);
            multiply_add<T>(o[2 * n], weights, right[0], right[1]);
            multiply_add<T>(o[2 * n + 1], weights, right[2], right[3]);
          }
        }
        store(stage, l0);
      });
#pragma unroll
      for (int n = 0; n < Dim / 8; ++n) {
        rows.pair(mine, 8 * n + 2 * c) = pack_pair<T>(o[n][0] * whole, o[n][1] * whole);
        rows.pair(mine + 8, 8 * n + 2 * c) = pack_pair<T>(o[n][2] * whole, o[n][3] * whole);
      }
      __syncthreads();
      store_rows<Dim, grad_threads>(rows, a.d_rows.at(b, h, t0), a.d_rows.row_stride, a.value_dim,
                                    a.d_row_pieces, 0, count);
    } else {
      if (!a.given) {
        walk([&](float(&x)[grad_latents / 8][4], int stage, int) {
          const Tile<grad_latents> logits = logits_of(stage);
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            float e[grad_latents / 8][2], most = top[r];
#pragma unroll
            for (int n = 0; n < grad_latents / 8; ++n) {
              const float2 shift = vector_of(stage, 0, n);
              const Word pair = logits.pair(mine + 8 * r, 8 * n + 2 * c);
              e[n][0] = fmaf(N::low(pair), a.scale, shift.x);
              e[n][1] = fmaf(N::high(pair), a.scale, shift.y);
              most = fmaxf(most, fmaxf(e[n][0], e[n][1]));
            }
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
            most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
            const float base = most == -INFINITY ? 0.F : most;
            const float decay = exp2_fast(top[r] - base);
            top[r] = most;
            sum[r] *= decay;
            dot[r] *= decay;
#pragma unroll
            for (int n = 0; n < grad_latents / 8; ++n) {
              const float2 unit = vector_of(stage, 1, n);
              const float p0 = exp2_fast(e[n][0] - base), p1 = exp2_fast(e[n][1] - base);
              sum[r] += p0 + p1;
              dot[r] += p0 * (unit.x * x[n][2 * r]) + p1 * (unit.y * x[n][2 * r + 1]);
            }
          }
        });
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
          for (int i = 1; i < 4; i *= 2) {
            sum[r] += __shfl_xor_sync(~0u, sum[r], i);
            dot[r] += __shfl_xor_sync(~0u, dot[r], i);
          }
          top[r] = top[r] == -INFINITY ? 0.F : top[r];
          sum[r] = sum[r] > 0 ? 1 / sum[r] : 0.F;  // the factor from here on
          dot[r] *= sum[r];
          const int t = mine + 8 * r;
          if (c == 0 && t < count) {
            const std::int64_t to = std::int64_t{head} * a.length + t0 + t;
            a.top[to] = top[r];
            a.factor[to] = sum[r];
          }
        }
      }
      walk([&](float(&x)[grad_latents / 8][4], int stage, int l0) {
        const Tile<grad_latents> logits = logits_of(stage);
#pragma unroll
        for (int n = 0; n < grad_latents / 8; ++n) {
          const float2 shift = vector_of(stage, 0, n), unit = vector_of(stage, 1, n);
          float columns[2] = {};
#pragma unroll
          for (int r = 0; r < 2; ++r) {
            Word& pair = logits.pair(mine + 8 * r, 8 * n + 2 * c);
            float d0 = unit.x * x[n][2 * r], d1 = unit.y * x[n][2 * r + 1];
            if (!a.given) {
              const float p0 = exp2_fast(fmaf(N::low(pair), a.scale, shift.x) - top[r]);
              const float p1 = exp2_fast(fmaf(N::high(pair), a.scale, shift.y) - top[r]);
              d0 = p0 * sum[r] * (d0 - dot[r]);
              d1 = p1 * sum[r] * (d1 - dot[r]);
              columns[0] += d0;
              columns[1] += d1;
              d0 *= a.grad_scale;
              d1 *= a.grad_scale;
            }
            pair = pack_pair<T>(d0, d1);
          }
          if (a.rest == nullptr) continue;
#pragma unroll
          for (int i = 4; i < 32; i *= 2) {
            columns[0] += __shfl_xor_sync(~0u, columns[0], i);
            columns[1] += __shfl_xor_sync(~0u, columns[1], i);
          }
          if (g == 0) {
            float* const to = sums + warp_row / 16 * grad_latents + 8 * n + 2 * c;
            to[0] = columns[0];
            to[1] = columns[1];
          }
        }
        store(stage, l0);
        const int l = l0 + static_cast<int>(threadIdx.x);
        if (a.rest != nullptr && threadIdx.x < grad_latents && l < a.latents) {
          const float* const from = sums + threadIdx.x;
          a.rest[(std::int64_t{head} * tiles + tile) * a.latents + l] =
              (from[0] + from[grad_latents]) + (from[2 * grad_latents] + from[3 * grad_latents]);
        }
      });
    }
  }
}

}  // namespace attnbench::kernels::cuda
