// What tokens get of LAVO's memory (see gradients.cuh), on the tensor cores:
// bfloat16, at most 64 bases and columns. A block goes back through its segment in tiles of up to
// 64 tokens of one window, a warp 16 of them, whose sums of du / n over what reads them are
// accumulators: of them comes dx = B^T R, and dB += R x^T, which stays in registers.
#pragma once

#include "attention/kernels/cuda/lavo/tensor_grads.cuh"

namespace attnbench::kernels::cuda {

/// In bytes: bases, two stages of tokens and upstream, R, vectors.
struct MemoryTokenLayout {
  static constexpr int width = 64;
  static constexpr int tile = memory_tensor_tokens * width * 2;
  static constexpr int tokens = tile, upstream = tokens + tile, stage = 2 * tile;
  static constexpr int sums = tokens + 2 * stage;
  static constexpr int totals = sums + tile;  // [warps, width]
  static constexpr int later = totals + memory_threads / 32 * width * 4;
  static constexpr int bytes = later + 2 * width * 4;
};

/// Becomes the sum over each of a warp's 16 tokens and those after it in the warp; the warp's own
/// sums go to [Width] `total`.
template <int Width>
__device__ inline void sum_later(float (&u)[Width / 8][4], float* total) {
  const int lane = threadIdx.x & 31;
#pragma unroll
  for (int n = 0; n < Width / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float sum = u[n][e] + u[n][2 + e];
#pragma unroll
      for (int i = 4; i < 32; i *= 2) {
        const float x = __shfl_down_sync(~0u, sum, i);
        if (lane + i < 32) sum += x;
      }
      const float x = __shfl_down_sync(~0u, sum, 4);
      u[n][2 + e] += lane + 4 < 32 ? x : 0;
      u[n][e] = sum;
      if (lane < 4) total[8 * n + 2 * lane + e] = sum;
    }
  }
}

/// Grid [slots, segments that are summed]. `a.out` is the tokens' gradient.
template <class T>
__global__ void __launch_bounds__(memory_threads, 3)
    memory_token_gradients_tensor(const MemoryArguments<T> a, const MemoryGradientArguments<T> g) {
  using Layout = MemoryTokenLayout;
  using N = Operand<T>;
  constexpr int width = Layout::width, warps = memory_threads / 32;
  using Matrix = float[width / 8][4];
  ATTNBENCH_SHARED(unsigned char, shared, 128);
  const MemorySegments& cut = a.plan.summing;
  const int k = static_cast<int>(blockIdx.y), begin = cut.begin(k), end = cut.end(k);
  const int head = static_cast<int>(blockIdx.x), b = head / a.heads, h = head % a.heads;
  const int lane = threadIdx.x & 31, warp = static_cast<int>(threadIdx.x >> 5), row = 16 * warp;
  const int column = 2 * (lane & 3), length = a.plan.reading.tokens;
  float* const totals = reinterpret_cast<float*>(shared + Layout::totals);
  // Of what reads a token: `later` windows, and `inside` what will be one of them.
  float* const later = reinterpret_cast<float*>(shared + Layout::later);
  float* const inside = later + width;
  const float* const grads = g.grads + static_cast<std::int64_t>(head) * length * a.count;
  const auto first_of = [&](int t1) {  // of the tile that ends with token t1 - 1
    const int t0 = max(begin, t1 - memory_tensor_tokens);
    return a.windows ? max(t0, a.plan.windows.begin(t1 - 1)) : t0;
  };
  const auto seen_at = [&](int t0, int n) {
    return seen_rows_of_64(a.mask == nullptr ? nullptr : a.mask + b * a.mask_stride + t0, n);
  };
  const auto tile_at = [&](int place, int stage) {
    return Tile<width>{shared + place + stage * Layout::stage};
  };
  const auto fetch = [&](int t1, int stage) {
    const int t0 = first_of(t1);
    copy_tile<width, true>(tile_at(Layout::tokens, stage), a.tokens.at(b, h, t0),
                           a.tokens.row_stride, a.dim, a.token_pieces, seen_at(t0, t1 - t0));
    if (a.averaged) {
      copy_tile<width, true>(tile_at(Layout::upstream, stage), g.d_out.at(b, h, t0),
                             g.d_out.row_stride, a.dim, g.d_out_pieces, all_rows_of_64(t1 - t0));
    }
    commit_copies();
  };
  const Tile<width> sums{shared + Layout::sums};
  Matrix d_bases = {};
  if (begin < end) {
    copy_tile<width, false>(Tile<width>{shared}, a.bases.at(0, h, 0), a.bases.row_stride, a.dim,
                            a.base_pieces, all_rows_of_64(a.count));
    fetch(end, 0);
    const int first = a.whole ? 0 : cut.first_of_unit(k) + cut.parts;
    for (int j = threadIdx.x; j < width; j += memory_threads) {
      const float* const from =
          g.grad_sums + static_cast<std::int64_t>(head) * a.plan.reading.count * a.count + j;
      float sum = 0;
#pragma unroll 4
      for (int i = a.plan.reading.count - 1; j < a.count && i >= first; --i) {
        sum += from[static_cast<std::int64_t>(i) * a.count];
      }
      later[j] = sum;
      inside[j] = 0;
    }
  }
  int stage = 0;
  for (int t1 = end, t0 = begin; t1 > begin; t1 = t0, stage ^= 1) {
    t0 = first_of(t1);
    const int n = t1 - t0;
    wait_copies<0>();
    __syncthreads();
    if (t0 > begin) fetch(t0, stage ^ 1);
    const Tile<width> tokens = tile_at(Layout::tokens, stage),
                      upstream = tile_at(Layout::upstream, stage);
    const std::uint64_t seen = seen_at(t0, n);
    Matrix u = {};
    if (!a.whole) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int t = token_of(row + 8 * half + (lane >> 2));
        const float* const from = grads + static_cast<std::int64_t>(t0 + t) * a.count;
#pragma unroll
        for (int i = 0; i < width / 8; ++i) {
#pragma unroll
          for (int e = 0; e < 2; ++e) {
            const int j = 8 * i + column + e;
            if (t < n && j < a.count) u[i][2 * half + e] = from[j];
          }
        }
      }
      sum_later<width>(u, totals + warp * width);
    }
    __syncthreads();
    // A window that ends with the tile's last token is read by what comes after it, as all are.
    const bool over = a.windows && a.plan.windows.ends(t1);
    const int t = token_of(row + (lane >> 2));  // and the next
    const bool seen0 = t < n && (seen >> t & 1) != 0,
               seen1 = t + 1 < n && (seen >> t >> 1 & 1) != 0;
#pragma unroll
    for (int i = 0; i < width / 8; ++i) {
      float2 behind = pair_at(later + 8 * i + column);
      if (over) {
        const float2 x = pair_at(inside + 8 * i + column);
        behind.x += x.x;
        behind.y += x.y;
      }
      if (a.inclusive) {
        for (int w = warp + 1; w < warps; ++w) {
          const float2 x = pair_at(totals + w * width + 8 * i + column);
          behind.x += x.x;
          behind.y += x.y;
        }
      }
      const float each = a.inclusive ? 1 : 0;
      u[i][0] = seen0 ? fmaf(each, u[i][0], behind.x) : 0;
      u[i][1] = seen0 ? fmaf(each, u[i][1], behind.y) : 0;
      u[i][2] = seen1 ? fmaf(each, u[i][2], behind.x) : 0;
      u[i][3] = seen1 ? fmaf(each, u[i][3], behind.y) : 0;
    }
    round_tile<T, width>(sums, u, row);
    Matrix out = {};
    combine_tile<T, width>(out, u, Fragments<width>(Tile<width>{shared}));
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int at = row + 8 * half + (lane >> 2), token = t + half;
      float own = 0;
      if (a.averaged && token < n) {
        const bool alone =
            a.alone && g.read[static_cast<std::int64_t>(b) * length + t0 + token] == 0;
        own = alone ? 1.F : 0.5F;
      }
#pragma unroll
      for (int i = 0; i < width / 8; ++i) {
        Word& pair = upstream.pair(at, 8 * i + column);
        float low = out[i][2 * half], high = out[i][2 * half + 1];
        if (own != 0) {
          low = fmaf(own, N::low(pair), low);
          high = fmaf(own, N::high(pair), high);
        }
        pair = pack_pair<T>(low, high);
      }
    }
    store_own_rows<T, width>(a, b, h, t0, n, upstream);
    __syncthreads();  // all sums are there, and the vectors were read
    add_outer_tile<T, width>(d_bases, Fragments<width>(sums), Fragments<width>(tokens), row);
    if (a.whole) continue;
    for (int j = threadIdx.x; j < width; j += memory_threads) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < warps; ++w) sum += totals[w * width + j];
      if (a.inclusive) {
        later[j] += sum;
      } else {
        if (over) later[j] += inside[j];
        inside[j] = (over ? 0.F : inside[j]) + sum;
      }
    }
  }
  const std::int64_t place = static_cast<std::int64_t>(head) * cut.count + k;
  float* const part = g.of_tokens + place * a.count * a.dim;
#pragma unroll
  for (int i = 0; i < width / 8; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int j = row + 8 * (e / 2) + (lane >> 2), d = 8 * i + column + e % 2;
      if (j < a.count && d < a.dim) part[j * a.dim + d] = d_bases[i][e];
    }
  }
}

}  // namespace attnbench::kernels::cuda
