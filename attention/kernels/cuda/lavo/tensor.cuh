// Tiles of 64 queries read the running memory on the tensor cores, for 16-bit numbers. A block
// takes one head and one segment; its bases stay in shared memory. Each warp owns 16 queries, whose
// coordinates stay in registers from the first product through the softmax into the last. The next
// tile is on its way while one is computed.
#pragma once

#include "attention/kernels/cuda/lavo/past.cuh"
#include "attention/kernels/cuda/lavo/tensor_tile.cuh"

namespace attnbench::kernels::cuda {

/// Means for each token, whose coordinates `u` holds: becomes the mean after each. `totals`:
/// [warps, Width]. All warps; the mean of all tokens goes to `next`.
template <int Width>
__device__ inline void run_means(float (&u)[Width / 8][4], float* totals, const float* mean,
                                 float* next, std::uint64_t seen, float before) {
  const int lane = threadIdx.x & 31, warp = static_cast<int>(threadIdx.x >> 5);
  const int column = 2 * (lane & 3), t = 16 * warp + 2 * (lane >> 2);
#pragma unroll
  for (int n = 0; n < Width / 8; ++n) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      float sum = u[n][e] + u[n][2 + e];
#pragma unroll
      for (int i = 4; i < 32; i *= 2) {
        const float x = __shfl_up_sync(~0u, sum, i);
        if (lane >= i) sum += x;
      }
      const float x = __shfl_up_sync(~0u, sum, 4);
      u[n][e] += lane >= 4 ? x : 0;
      u[n][2 + e] = sum;
      if (lane >= 28) totals[warp * Width + 8 * n + column + e] = sum;
    }
  }
  __syncthreads();
  const auto tokens_to = [&](int i) {  // real ones of the tile up to token i
    return static_cast<float>(__popcll(seen & (~std::uint64_t{0} >> (63 - i))));
  };
  const auto over = [&](float tokens) { return tokens == 0 ? 0 : 1 / (before + tokens); };
  const float tokens0 = tokens_to(t), tokens1 = tokens_to(t + 1);
  const float share0 = over(tokens0), share1 = over(tokens1);
#pragma unroll
  for (int n = 0; n < Width / 8; ++n) {
    float2 earlier = make_float2(0, 0);
    for (int w = 0; w < warp; ++w) {
      const float2 x = pair_at(totals + w * Width + 8 * n + column);
      earlier.x += x.x;
      earlier.y += x.y;
    }
    const float2 m = pair_at(mean + 8 * n + column);
    u[n][0] = m.x + (earlier.x + u[n][0] - tokens0 * m.x) * share0;
    u[n][1] = m.y + (earlier.y + u[n][1] - tokens0 * m.y) * share0;
    u[n][2] = m.x + (earlier.x + u[n][2] - tokens1 * m.x) * share1;
    u[n][3] = m.y + (earlier.y + u[n][3] - tokens1 * m.y) * share1;
  }
  const float all = tokens_to(63);
  for (int j = threadIdx.x; j < Width; j += memory_threads) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < memory_threads / 32; ++w) sum += totals[w * Width + j];
    next[j] = mean[j] + (sum - all * mean[j]) * over(all);
  }
}

/// c becomes weights times u, not yet over the weights' sums, which are returned for the thread's
/// two rows. `u_at(n)`: the means of an accumulator's four places; `fence` hides what is past the
/// last basis.
template <int Width, class Means>
__device__ inline float2 weigh_tile(float (&c)[Width / 8][4], const float* fence, float scale,
                                    const Means& u_at) {
  const int column = 2 * (threadIdx.x & 3);
  float top0 = -INFINITY, top1 = -INFINITY;
#pragma unroll
  for (int n = 0; n < Width / 8; ++n) {
    const float4 u = u_at(n);
    const float2 wall = pair_at(fence + 8 * n + column);
    c[n][0] = fmaf(scale * c[n][0], u.x, wall.x);
    c[n][1] = fmaf(scale * c[n][1], u.y, wall.y);
    c[n][2] = fmaf(scale * c[n][2], u.z, wall.x);
    c[n][3] = fmaf(scale * c[n][3], u.w, wall.y);
    top0 = fmaxf(top0, fmaxf(c[n][0], c[n][1]));
    top1 = fmaxf(top1, fmaxf(c[n][2], c[n][3]));
  }
#pragma unroll
  for (int i = 1; i < 4; i *= 2) {
    top0 = fmaxf(top0, __shfl_xor_sync(~0u, top0, i));
    top1 = fmaxf(top1, __shfl_xor_sync(~0u, top1, i));
  }
  float2 sum = make_float2(0, 0);
#pragma unroll
  for (int n = 0; n < Width / 8; ++n) {
    const float4 u = u_at(n);
    const float w0 = exp2_fast(c[n][0] - top0), w1 = exp2_fast(c[n][1] - top0);
    const float w2 = exp2_fast(c[n][2] - top1), w3 = exp2_fast(c[n][3] - top1);
    sum.x += w0 + w1;
    sum.y += w2 + w3;
    c[n][0] = w0 * u.x;
    c[n][1] = w1 * u.y;
    c[n][2] = w2 * u.z;
    c[n][3] = w3 * u.w;
  }
#pragma unroll
  for (int i = 1; i < 4; i *= 2) {
    sum.x += __shfl_xor_sync(~0u, sum.x, i);
    sum.y += __shfl_xor_sync(~0u, sum.y, i);
  }
  return sum;
}

/// `Each`: MemoryOrder::each_token.
template <class T, int Width, bool Each>
__global__ void __launch_bounds__(memory_threads, Width == 64 ? 3 : 2)
    memory_read_tensor(const MemoryArguments<T> a) {
  using Layout = MemoryTensorLayout<Width>;
  ATTNBENCH_SHARED(unsigned char, shared, 128);
  const MemorySegments& cut = a.plan.reading;
  const int k = static_cast<int>(blockIdx.y), begin = cut.begin(k), end = cut.end(k);
  if (begin >= end) return;
  float* const totals = reinterpret_cast<float*>(shared + Layout::totals);
  float* const fence = reinterpret_cast<float*>(shared + Layout::fence);
  MemoryPast<T> past(a, reinterpret_cast<float*>(shared + Layout::past), Width, Width);
  const int b = past.b, h = past.h, warp = static_cast<int>(threadIdx.x >> 5);
  const int lane = threadIdx.x & 31;
  const bool leaves = end == cut.tokens && a.after.mean != nullptr;
  const bool gathers = a.windows && (leaves || a.plan.windows.end(begin) < end);
  const auto length_at = [&](int t0) {
    const int n = min(memory_tensor_tokens, end - t0);
    return Each ? n : min(n, a.plan.windows.end(t0) - t0);
  };
  const auto seen_at = [&](int t0, int n) {
    return seen_rows_of_64(a.whole ? nullptr : past.mask(t0), n);
  };
  const auto tile_at = [&](int place, int stage) {
    return Tile<Width>{shared + place + stage * Layout::stage};
  };
  const auto fetch = [&](int t0, int stage) {
    const int n = length_at(t0);
    copy_tile<Width, true>(tile_at(Layout::query, stage), a.query.at(b, h, t0), a.query.row_stride,
                           a.dim, a.query_pieces, all_rows_of_64(n));
    if (Each || gathers || a.averaged) {
      copy_tile<Width, true>(tile_at(Layout::tokens, stage), a.tokens.at(b, h, t0),
                             a.tokens.row_stride, a.dim, a.token_pieces, seen_at(t0, n));
    }
    commit_copies();
  };
  const Tile<Width> base_tile{shared};
#pragma unroll
  for (int j0 = 0; j0 < Width; j0 += memory_tensor_tokens) {
    // Where there are none the address is still one of a basis.
    copy_tile<Width, false>(Tile<Width>{shared + j0 * 2 * Width},
                            a.bases.at(0, h, j0 < a.count ? j0 : 0), a.bases.row_stride, a.dim,
                            a.base_pieces, all_rows_of_64(a.count - j0));
  }
  fetch(begin, 0);
  for (int j = threadIdx.x; j < Width; j += memory_threads) fence[j] = j < a.count ? 0 : -INFINITY;
  past.start(k);
  float* mean = past.mean;
  float* next_mean = past.begun_along;
  float sums[Width / 32][4] = {};  // of the window begun, a quarter of its columns a warp
  int stage = 0;
  for (int t0 = begin, n = 0; t0 < end; t0 += n, stage ^= 1) {
    n = length_at(t0);
    wait_copies<0>();
    __syncthreads();
    if (t0 + n < end) fetch(t0 + n, stage ^ 1);
    const Tile<Width> query = tile_at(Layout::query, stage),
                      tokens = tile_at(Layout::tokens, stage);
    const Fragments<Width> bases(base_tile);
    const std::uint64_t seen = seen_at(t0, n);
    float c[Width / 8][4] = {};
    project_tile<T, Width>(c, Fragments<Width>(query), bases, 16 * warp);
    float2 sum;
    if constexpr (Each) {
      float u[Width / 8][4] = {};
      project_tile<T, Width>(u, Fragments<Width>(tokens), bases, 16 * warp);
      run_means<Width>(u, totals, mean, next_mean, seen, static_cast<float>(past.remembered));
      past.remembered += __popcll(seen);
      sum = weigh_tile<Width>(c, fence, a.scale, [&](int i) {
        return make_float4(u[i][0], u[i][1], u[i][2], u[i][3]);
      });
    } else {
      sum = weigh_tile<Width>(c, fence, a.scale, [&](int i) {
        const float2 u = pair_at(mean + 8 * i + 2 * (lane & 3));
        return make_float4(u.x, u.y, u.x, u.y);
      });
    }
    float out[Width / 8][4] = {};
    combine_tile<T, Width>(out, c, bases);
    const float half = a.averaged ? 0.5F : 1.F;
    const float own = !a.averaged ? 0.F : a.alone && past.remembered == 0 ? 1.F : 0.5F;
    if (!Each && gathers) add_columns<T, Width>(sums, Fragments<Width>(tokens), warp);
    store_tile<T, Width>(a, b, h, t0, n, out, half / sum.x, half / sum.y, own, seen, query, tokens);
    if constexpr (Each) {
      float* const swapped = mean;
      mean = next_mean;
      next_mean = swapped;
    } else if (gathers) {
      past.begun += __popcll(seen);
      const bool ends = a.plan.windows.ends(t0 + n);
      if (!ends && t0 + n < end) continue;
      put_columns<Width>(past.sum, sums, warp, a.dim);
      __syncthreads();
      if (!ends) continue;
      past.remember(past.sum, past.begun);
      past.begun = 0;
      for (int d = threadIdx.x; d < a.dim; d += memory_threads) past.sum[d] = 0;
      clear_columns(sums);
    }
  }
  __syncthreads();
  if (!leaves) return;
  if (Each && mean != past.mean) {
    for (int j = threadIdx.x; j < a.count; j += memory_threads) past.mean[j] = mean[j];
    __syncthreads();
  }
  past.leave(past.sum);
}

}  // namespace attnbench::kernels::cuda
