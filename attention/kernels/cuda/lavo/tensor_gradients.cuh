// What queries give to the gradients of LAVO's memory (see gradients.cuh), on
// the tensor cores: bfloat16, at most 64 bases and columns. A block takes one head and one segment,
// each warp 16 queries of a tile; what the bases' gradient needs of all of them passes through
// shared memory, rounded, and its sums stay in registers, 16 bases a warp.
#pragma once

#include "attention/kernels/cuda/lavo/tensor.cuh"
#include "attention/kernels/cuda/lavo/tensor_grads.cuh"

namespace attnbench::kernels::cuda {

/// In bytes: bases, two stages of queries, upstream and tokens, what is read and the coordinates'
/// gradient, vectors.
struct MemoryGradientLayout {
  static constexpr int width = 64;
  static constexpr int tile = memory_tensor_tokens * width * 2;
  static constexpr int query = tile, upstream = query + tile, tokens = upstream + tile;
  static constexpr int stage = 3 * tile;
  static constexpr int read = query + 2 * stage, asked = read + tile;
  static constexpr int totals = asked + tile;
  static constexpr int grads = totals + memory_threads / 32 * width * 4;
  static constexpr int fence = grads + memory_threads / 32 * width * 4;
  static constexpr int past = fence + width * 4;
  static constexpr int bytes = past + 5 * width * 4;  // see MemoryPast
};

/// `a.out` is the queries' gradient.
template <class T>
__global__ void __launch_bounds__(memory_threads, 2)
    memory_query_gradients_tensor(const MemoryArguments<T> a, const MemoryGradientArguments<T> g) {
  using Layout = MemoryGradientLayout;
  constexpr int width = Layout::width;
  using Matrix = float[width / 8][4];
  ATTNBENCH_SHARED(unsigned char, shared, 128);
  const MemorySegments& cut = a.plan.reading;
  const int k = static_cast<int>(blockIdx.y), begin = cut.begin(k), end = cut.end(k);
  float* const totals = reinterpret_cast<float*>(shared + Layout::totals);
  float* const fence = reinterpret_cast<float*>(shared + Layout::fence);
  MemoryPast<T> past(a, reinterpret_cast<float*>(shared + Layout::past), width, width);
  const int b = past.b, h = past.h, warp = static_cast<int>(threadIdx.x >> 5);
  const int lane = threadIdx.x & 31, row = 16 * warp, column = 2 * (lane & 3);
  const std::int64_t place = static_cast<std::int64_t>(past.head) * cut.count + k;
  const bool each = a.inclusive;
  const bool gathers = a.windows && a.plan.windows.end(begin) < end;
  const auto length_at = [&](int t0) {
    const int n = min(memory_tensor_tokens, end - t0);
    return each ? n : min(n, a.plan.windows.end(t0) - t0);
  };
  const auto seen_at = [&](int t0, int n) {
    return seen_rows_of_64(a.whole ? nullptr : past.mask(t0), n);
  };
  const auto tile_at = [&](int offset, int stage) {
    return Tile<width>{shared + offset + stage * Layout::stage};
  };
  const auto fetch = [&](int t0, int stage) {
    const int n = length_at(t0);
    const std::uint64_t all = all_rows_of_64(n);
    copy_tile<width, true>(tile_at(Layout::query, stage), a.query.at(b, h, t0), a.query.row_stride,
                           a.dim, a.query_pieces, all);
    copy_tile<width, true>(tile_at(Layout::upstream, stage), g.d_out.at(b, h, t0),
                           g.d_out.row_stride, a.dim, g.d_out_pieces, all);
    if (each || gathers) {
      copy_tile<width, true>(tile_at(Layout::tokens, stage), a.tokens.at(b, h, t0),
                             a.tokens.row_stride, a.dim, a.token_pieces, seen_at(t0, n));
    }
    commit_copies();
  };
  Matrix d_bases = {};
  float* const grads = reinterpret_cast<float*>(shared + Layout::grads) + warp * width;
  for (int j = lane; j < width; j += 32) grads[j] = 0;
  if (begin < end) {
    copy_tile<width, false>(Tile<width>{shared}, a.bases.at(0, h, 0), a.bases.row_stride, a.dim,
                            a.base_pieces, all_rows_of_64(a.count));
    fetch(begin, 0);
    for (int j = threadIdx.x; j < width; j += memory_threads)
      fence[j] = j < a.count ? 0 : -INFINITY;
    past.start(k);
  }
  float* mean = past.mean;
  float* next_mean = past.begun_along;
  float sums[width / 32][4] = {};  // of the window begun
  int stage = 0;
  for (int t0 = begin, n = 0; t0 < end; t0 += n, stage ^= 1) {
    n = length_at(t0);
    wait_copies<0>();
    __syncthreads();
    if (t0 + n < end) fetch(t0 + n, stage ^ 1);
    const Tile<width> query = tile_at(Layout::query, stage),
                      tokens = tile_at(Layout::tokens, stage);
    const Tile<width> upstream = tile_at(Layout::upstream, stage);
    const Tile<width> read{shared + Layout::read}, asked{shared + Layout::asked};
    const Fragments<width> bases(Tile<width>{shared});
    const std::uint64_t seen = seen_at(t0, n);
    Matrix c = {}, dm = {}, u = {};
    project_tile<T, width>(c, Fragments<width>(query), bases, row);
    project_tile<T, width>(dm, Fragments<width>(upstream), bases, row);
    if (each) {
      project_tile<T, width>(u, Fragments<width>(tokens), bases, row);
      run_means<width>(u, totals, mean, next_mean, seen, static_cast<float>(past.remembered));
    } else {
#pragma unroll
      for (int i = 0; i < width / 8; ++i) {
        const float2 m = pair_at(mean + 8 * i + column);
        u[i][0] = u[i][2] = m.x;
        u[i][1] = u[i][3] = m.y;
      }
    }
    const float share = a.alone && past.remembered == 0 ? 0.F : a.averaged ? 0.5F : 1.F;
#pragma unroll
    for (int i = 0; i < width / 8; ++i) {
#pragma unroll
      for (int e = 0; e < 4; ++e) dm[i][e] *= share;
    }
    differentiate_tile<width>(c, dm, u, fence, a.scale);
    float over[2];
    float* to[2];
    bool there[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int t = token_of(row + 8 * half + (lane >> 2));
      const std::int64_t own = each ? __popcll(seen & (~std::uint64_t{0} >> (63 - t))) : 0;
      const std::int64_t count = past.remembered + own;
      there[half] = t < n;
      over[half] = count == 0 || t >= n ? 0 : 1 / static_cast<float>(count);
      to[half] = g.grads + (static_cast<std::int64_t>(past.head) * cut.tokens + t0 + t) * a.count;
      if (h == 0 && column == 0 && t < n) {
        g.read[static_cast<std::int64_t>(b) * cut.tokens + t0 + t] = static_cast<int>(count);
      }
    }
#pragma unroll
    for (int i = 0; i < width / 8; ++i) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int j = 8 * i + column + e;
        const float grad0 = over[0] * dm[i][e], grad1 = over[1] * dm[i][2 + e];
        if (there[0] && j < a.count) to[0][j] = grad0;
        if (there[1] && j < a.count) to[1][j] = grad1;
        float sum = grad0 + grad1;
#pragma unroll
        for (int step = 4; step < 32; step *= 2) sum += __shfl_xor_sync(~0u, sum, step);
        if (lane < 4) grads[j] += sum;
        u[i][e] *= share;
        u[i][2 + e] *= share;
      }
    }
    round_tile<T, width>(read, u, row);
    round_tile<T, width>(asked, c, row);
    Matrix dq = {};
    combine_tile<T, width>(dq, c, bases);
    if (!each && gathers) add_columns<T, width>(sums, Fragments<width>(tokens), warp);
    __syncthreads();
    add_outer_tile<T, width>(d_bases, Fragments<width>(read), Fragments<width>(upstream), row);
    add_outer_tile<T, width>(d_bases, Fragments<width>(asked), Fragments<width>(query), row);
    __syncthreads();  // the result goes by way of the queries' tile
    store_tile<T, width>(a, b, h, t0, n, dq, 1, 1, 0, seen, query, tokens);
    if (each) {
      past.remembered += __popcll(seen);
      float* const swapped = mean;
      mean = next_mean;
      next_mean = swapped;
    } else if (gathers) {
      past.begun += __popcll(seen);
      if (!a.plan.windows.ends(t0 + n)) continue;
      put_columns<width>(past.sum, sums, warp, a.dim);
      __syncthreads();
      past.remember(past.sum, past.begun);
      past.begun = 0;
      for (int d = threadIdx.x; d < a.dim; d += memory_threads) past.sum[d] = 0;
      clear_columns(sums);
    }
  }
  float* const part = g.of_reading + place * a.count * a.dim;
#pragma unroll
  for (int i = 0; i < width / 8; ++i) {
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int j = row + 8 * (e / 2) + (lane >> 2), d = 8 * i + column + e % 2;
      if (j < a.count && d < a.dim) part[j * a.dim + d] = d_bases[i][e];
    }
  }
  __syncthreads();
  const float* const all = reinterpret_cast<float*>(shared + Layout::grads);
  for (int j = threadIdx.x; j < a.count; j += memory_threads) {
    float sum = 0;
#pragma unroll
    for (int w = 0; w < memory_threads / 32; ++w) sum += all[w * width + j];
    g.grad_sums[place * a.count + j] = sum;
  }
}

}  // namespace attnbench::kernels::cuda
