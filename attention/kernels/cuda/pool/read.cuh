// The queries' reading of the whole pool on the tensor cores: O = P M. A block keeps the averages M
// of one head in shared memory; a warp takes 16 queries at a time, whose logits go from global
// memory to registers, there become the weights P, 64 latents at once against a running maximum,
// and are the left operand as they are: which latent is which column of it, read_place says.
#pragma once

#include "attention/kernels/cuda/pool/merge.cuh"
#include "attention/kernels/cuda/recurrent/chunks.cuh"

namespace attnbench::kernels::cuda {

template <class T>
struct PoolRead {
  Rows<const T> query;           ///< [heads, length, latents]
  const T* averages = nullptr;   ///< [heads, padded, stride], see PoolMerge
  const float* shift = nullptr;  ///< [heads, latents], added to logits; may be null
  Rows<T> out;
  int heads = 1, length = 0, latents = 0, value_dim = 0;
  int padded = 0, stride = 0, slices = 1;
  bool given = false;  ///< whether queries are the weights
  float scale = 1;     ///< log2(e) included
  bool query_pieces = false, out_pieces = false;
};

/// A lane's share of 16 rows and read_latents columns: for rows g and g + 8 the numbers from 8 i on
/// in words 0 to 3, those from 32 + 8 i on in 4 to 7 (g = lane / 4, i = lane % 4). 0 where there
/// are none.
template <class T>
__device__ inline void load_queries(Word (&to)[2][8], const PoolRead<T>& a, const T* head, int t0,
                                    int l0) {
  const int lane = static_cast<int>(threadIdx.x & 31);
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int t = t0 + (lane >> 2) + 8 * r;
    const T* const row = head + t * a.query.row_stride;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int l = l0 + 32 * half + 8 * (lane & 3);
      if (a.query_pieces) {
        uint4 x = make_uint4(0, 0, 0, 0);
        if (t < a.length && l < a.latents) x = *reinterpret_cast<const uint4*>(row + l);
        to[r][4 * half] = x.x;
        to[r][4 * half + 1] = x.y;
        to[r][4 * half + 2] = x.z;
        to[r][4 * half + 3] = x.w;
        continue;
      }
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const bool first = t < a.length && l + 2 * j < a.latents;
        const bool second = t < a.length && l + 2 * j + 1 < a.latents;
        const Word low = first ? row[l + 2 * j].bits : 0;
        const Word high = second ? row[l + 2 * j + 1].bits : 0;
        to[r][4 * half + j] = low | high << 16;
      }
    }
  }
}

/// Turns logits into weights against the running maximum `top`, with their sums in `sum` (a lane's
/// share); returns by how much what came before decays.
template <class T>
__device__ inline float weigh_queries(Word (&x)[8], const float (&shift)[16], float scale,
                                      float& top, float& sum) {
  using N = Operand<T>;
  float logits[16], most = top;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    logits[2 * j] = fmaf(N::low(x[j]), scale, shift[2 * j]);
    logits[2 * j + 1] = fmaf(N::high(x[j]), scale, shift[2 * j + 1]);
    most = fmaxf(most, fmaxf(logits[2 * j], logits[2 * j + 1]));
  }
  most = fmaxf(most, __shfl_xor_sync(~0u, most, 1));
  most = fmaxf(most, __shfl_xor_sync(~0u, most, 2));
  // A row without any logit but -infinity must not compute infinity minus infinity.
  const float base = most == -INFINITY ? 0.F : most;
  const float decay = exp2_fast(top - base);
  top = most;
  sum *= decay;
#pragma unroll
  for (int j = 0; j < 8; ++j) {
    x[j] = pack_pair<T>(exp2_fast(logits[2 * j] - base), exp2_fast(logits[2 * j + 1] - base));
    sum += N::low(x[j]) + N::high(x[j]);  // as they were rounded, so that weights sum to 1
  }
  return decay;
}

/// Writes a warp's 16 rows of O, each times its factor, by way of `tile`.
template <class T, int Columns>
__device__ inline void store_results(const Rows<T>& out, int length, bool by_pieces,
                                     const float (&o)[Columns / 8][4], const float (&factor)[2],
                                     const Tile<Columns>& tile, T* head, int t0, int columns) {
  const int lane = static_cast<int>(threadIdx.x & 31), g = lane >> 2, c = lane & 3;
#pragma unroll
  for (int n = 0; n < Columns / 8; ++n) {
    tile.pair(g, 8 * n + 2 * c) = pack_pair<T>(o[n][0] * factor[0], o[n][1] * factor[0]);
    tile.pair(g + 8, 8 * n + 2 * c) = pack_pair<T>(o[n][2] * factor[1], o[n][3] * factor[1]);
  }
  __syncwarp();
  constexpr int pieces = Columns / 8, rows = 32 / pieces;  // moved at once
  const int piece = lane % pieces;
#pragma unroll
  for (int i = 0; i < 16 / rows; ++i) {
    const int row = lane / pieces + i * rows;
    if (t0 + row >= length || piece * 8 >= columns) continue;
    const uint4 x = tile.piece(row, piece);
    T* const to = head + (t0 + row) * out.row_stride + piece * 8;
    if (by_pieces) {
      *reinterpret_cast<uint4*>(to) = x;
      continue;
    }
    const Word words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      if (piece * 8 + j < columns) {
        to[j].bits = static_cast<std::uint16_t>(words[j / 2] >> (j % 2 * 16));
      }
    }
  }
  __syncwarp();
}

/// Grid [heads * slices, blocks]; shared memory of read_bytes.
template <class T, int Columns>
__global__ void __launch_bounds__(32 * read_warps, Columns > 64 ? 1 : 2)
    pool_read(const PoolRead<T> a) {
  ATTNBENCH_SHARED(unsigned char, memory, 128);
  constexpr int threads = 32 * read_warps;
  const int x = static_cast<int>(blockIdx.x), slice = x % a.slices, head = x / a.slices;
  const int b = head / a.heads, h = head % a.heads, column = slice * Columns;
  const int lane = static_cast<int>(threadIdx.x & 31), warp = static_cast<int>(threadIdx.x >> 5);
  const Tile<Columns> averages{memory};
  float* const shift = reinterpret_cast<float*>(memory + a.padded * Columns * 2);  // [padded]
  const Tile<Columns> mine{memory + a.padded * (Columns * 2 + 4) + warp * 16 * Columns * 2};
  const T* const from = a.averages + std::int64_t{head} * a.padded * a.stride + column;
  for (int l0 = 0; l0 < a.padded; l0 += read_latents) {
    fetch<Columns, threads>(Tile<Columns>{memory + l0 * Columns * 2},
                            from + std::int64_t{l0} * a.stride, a.stride,
                            min(Columns, a.stride - column), true, ~std::uint64_t{0});
  }
  commit_copies();
  for (int l = threadIdx.x; l < a.padded; l += threads) {
    const bool real = l < a.latents;
    shift[l] = !real ? -INFINITY
                     : (a.shift == nullptr ? 0.F : a.shift[std::int64_t{head} * a.latents + l]);
  }
  wait_copies<0>();
  __syncthreads();

  const Fragments<Columns> right_side(averages);
  const T* const queries = a.query.at(b, h, 0);
  const int tiles = (a.length + 15) / 16, step = static_cast<int>(gridDim.y) * read_warps;
  Word next[2][8];
  int tile = static_cast<int>(blockIdx.y) * read_warps + warp;
  if (tile < tiles) load_queries(next, a, queries, tile * 16, 0);
  for (; tile < tiles; tile += step) {
    float o[Columns / 8][4] = {};
    float top[2] = {-INFINITY, -INFINITY}, sum[2] = {};
    for (int l0 = 0; l0 < a.padded; l0 += read_latents) {
      Word p[2][8];
#pragma unroll
      for (int i = 0; i < 16; ++i) p[i / 8][i % 8] = next[i / 8][i % 8];
      const bool ends = l0 + read_latents >= a.padded;  // the row's last latents
      if (!ends || tile + step < tiles) {
        load_queries(next, a, queries, (ends ? tile + step : tile) * 16,
                     ends ? 0 : l0 + read_latents);
      }
      if (!a.given) {
        float add[16];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const int l = l0 + 32 * (i / 2) + 8 * (lane & 3) + 4 * (i % 2);
          const float4 y = *reinterpret_cast<const float4*>(shift + l);
          add[4 * i] = y.x;
          add[4 * i + 1] = y.y;
          add[4 * i + 2] = y.z;
          add[4 * i + 3] = y.w;
        }
        const float decay0 = weigh_queries<T>(p[0], add, a.scale, top[0], sum[0]);
        const float decay1 = weigh_queries<T>(p[1], add, a.scale, top[1], sum[1]);
        if (l0 > 0) {
#pragma unroll
          for (int n = 0; n < Columns / 8; ++n) {
            o[n][0] *= decay0;
            o[n][1] *= decay0;
            o[n][2] *= decay1;
            o[n][3] *= decay1;
          }
        }
      }
#pragma unroll
      for (int k = 0; k < read_latents / 16; ++k) {
        const Word left[4] = {p[0][k], p[1][k], p[0][4 + k], p[1][4 + k]};
#pragma unroll
        for (int n = 0; n < Columns / 16; ++n) {
          Word right[4];
          right_side.right_transposed(right, l0 + 16 * k, n * 16);
          multiply_add<T>(o[2 * n], left, right[0], right[1]);
          multiply_add<T>(o[2 * n + 1], left, right[2], right[3]);
        }
      }
    }
    float factor[2] = {1, 1};
    if (!a.given) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
        sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
        factor[r] = sum[r] > 0 ? __fdividef(1.F, sum[r]) : 0.F;
      }
    }
    store_results<T, Columns>(a.out, a.length, a.out_pieces, o, factor, mine,
                              a.out.at(b, h, 0) + column, tile * 16,
                              min(Columns, a.value_dim - column));
  }
}

}  // namespace attnbench::kernels::cuda
