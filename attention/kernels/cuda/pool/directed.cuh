// The whole pool of logits that are made of tokens: scale x . w_l, and less |scale x|^2 / 2 where
// scores are. Both passes are an attention with a bias for each of its columns, so that one kernel
// does both: the states with latents as rows, tokens as columns and a token's norm as bias, the
// reading with queries as rows, latents as columns and z_l as bias. Directions are sums of two
// 16-bit numbers, so that a product with them is as accurate as the tokens are.
#pragma once

#include "attention/kernels/cuda/pool/read.cuh"

namespace attnbench::kernels::cuda {

constexpr int directed_rows = 16 * read_warps;  // of a block
constexpr int directed_columns = 64;            // taken in at once

template <class T>
struct DirectedPool {
  Rows<const T> tokens, values;  ///< queries, or scores and values
  /// [heads or 1, padded, Dim], zeros where there is nothing: directions = upper + lower.
  const T *upper = nullptr, *lower = nullptr;
  std::int64_t direction_stride = 0;  ///< from head to head
  const T* averages = nullptr;        ///< reading: [heads, padded, stride], latents in order
  const float* shift = nullptr;       ///< reading: [heads, latents], added to logits; may be null
  Rows<T> out;                        ///< of the reading
  RecurrentState to;                  ///< of the states, as PoolMerge wants them
  const std::uint8_t* mask = nullptr;
  std::int64_t mask_stride = 0;
  int heads = 1;  ///< of a batch row
  int all_heads = 1, length = 0, latents = 0, value_dim = 0, dim = 0;
  int padded = 0, stride = 0, slices = 1;
  int segments = 1, segment_chunks = 1, rows_of_blocks = 1;  ///< of the states
  float scale = 1;                                           ///< log2(e) included
  float square = 0;  ///< on |x|^2, taken from scores' logits; log2(e) included
  bool token_pieces = false, value_pieces = false, out_pieces = false;
};

/// Fragments of a warp's 16 rows, a left operand for each 16 of their numbers.
template <int Dim, class T>
__device__ inline void load_rows(Word (&to)[Dim / 16][4], const T* from, std::int64_t stride,
                                 int rows, int width) {
  const int lane = static_cast<int>(threadIdx.x & 31), g = lane >> 2, c = lane & 3;
#pragma unroll
  for (int k = 0; k < Dim / 16; ++k) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = g + 8 * (i & 1), column = 16 * k + 8 * (i >> 1) + 2 * c;
      const T* const at = from + row * stride + column;
      const Word low = row < rows && column < width ? at[0].bits : 0;
      const Word high = row < rows && column + 1 < width ? at[1].bits : 0;
      to[k][i] = low | high << 16;
    }
  }
}

/// The bias of a chunk's tokens, -infinity for those that are not there or hidden. Four threads a
/// token.
template <int Dim, class T>
__device__ inline void token_bias(const Tile<Dim>& tile, std::uint64_t seen, float square,
                                  float* bias) {
  using N = Operand<T>;
  const int row = static_cast<int>(threadIdx.x) / 4, part = static_cast<int>(threadIdx.x) % 4;
  float sum = 0;
#pragma unroll
  for (int i = 0; i < Dim / 32; ++i) {
    const uint4 x = tile.piece(row, part + 4 * i);
    const Word words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      sum += N::low(words[j]) * N::low(words[j]) + N::high(words[j]) * N::high(words[j]);
    }
  }
  sum += __shfl_xor_sync(~0u, sum, 1);
  sum += __shfl_xor_sync(~0u, sum, 2);
  if (part == 0) bias[row] = has(seen, row) ? -square * sum : -INFINITY;
}

template <class T, int Dim, bool Reading>
struct DirectedLayout {
  static constexpr int tile = directed_columns * Dim * 2;
  static constexpr int values = (Reading ? 2 : 1) * tile;  // behind upper and lower, or tokens
  static constexpr int stage = values + tile;
  static constexpr int bias = 2 * stage;
  static constexpr int bytes = bias + directed_columns * 4;
  static_assert(2 * directed_rows * Dim <= 2 * stage);  // where results are put in order
};

/// States: grid [heads * blocks of rows * slices, segments]. Reading: [heads * slices, tiles of
/// queries]. 32 * read_warps threads.
template <class T, int Dim, bool Reading>
__global__ void __launch_bounds__(32 * read_warps, 1) pool_directed(const DirectedPool<T> a) {
  using Layout = DirectedLayout<T, Dim, Reading>;
  using N = Operand<T>;
  constexpr int threads = 32 * read_warps, sides = Reading ? 1 : 2;
  ATTNBENCH_SHARED(unsigned char, memory, 128);
  float* const bias = reinterpret_cast<float*>(memory + Layout::bias);
  const int lane = static_cast<int>(threadIdx.x & 31), g = lane >> 2, c = lane & 3;
  const int warp = static_cast<int>(threadIdx.x >> 5);
  int place = static_cast<int>(blockIdx.x);
  const int column = place % a.slices * Dim;  // of the values
  place /= a.slices;
  const int row_block = Reading ? static_cast<int>(blockIdx.y) : place % a.rows_of_blocks;
  const int head = Reading ? place : place / a.rows_of_blocks, b = head / a.heads,
            h = head % a.heads;
  const int row0 = row_block * directed_rows + 16 * warp;
  const T* const upper = a.upper + h * a.direction_stride;
  const T* const lower = a.lower + h * a.direction_stride;
  const int segment = Reading ? 0 : static_cast<int>(blockIdx.y);
  const int first = segment * a.segment_chunks * directed_columns;
  const int last = Reading ? a.padded : min(a.length, first + a.segment_chunks * directed_columns);

  Word rows[sides][Dim / 16][4];
  if constexpr (Reading) {
    load_rows<Dim>(rows[0], a.tokens.at(b, h, row0), a.tokens.row_stride, a.length - row0, a.dim);
  } else {
    const int there = a.padded - row0;
    load_rows<Dim>(rows[0], upper + std::int64_t{row0} * Dim, Dim, there, Dim);
    load_rows<Dim>(rows[1], lower + std::int64_t{row0} * Dim, Dim, there, Dim);
  }

  const auto load = [&](int x0, int stage) {
    unsigned char* const at = memory + stage * Layout::stage;
    const Tile<Dim> values{at + Layout::values};
    if constexpr (Reading) {
      constexpr std::uint64_t all = ~std::uint64_t{0};
      const std::int64_t from = std::int64_t{x0} * Dim;
      fetch<Dim, threads>(Tile<Dim>{at}, upper + from, Dim, Dim, true, all);
      fetch<Dim, threads>(Tile<Dim>{at + Layout::tile}, lower + from, Dim, Dim, true, all);
      fetch<Dim, threads>(values,
                          a.averages + (std::int64_t{head} * a.padded + x0) * a.stride + column,
                          a.stride, min(Dim, a.stride - column), true, all);
      return all;
    } else {
      const std::uint8_t* const mask =
          a.mask == nullptr ? nullptr : a.mask + b * a.mask_stride + x0;
      const std::uint64_t seen = seen_rows(mask, min(directed_columns, last - x0));
      fetch<Dim, threads>(Tile<Dim>{at}, a.tokens.at(b, h, x0), a.tokens.row_stride, a.dim,
                          a.token_pieces, seen);
      fetch<Dim, threads>(values, a.values.at(b, h, x0) + column, a.values.row_stride,
                          min(Dim, a.value_dim - column), a.value_pieces, seen);
      return seen;
    }
  };

  // Maxima, less the lift.
  float o[Dim / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  std::uint64_t coming = 0;
  if (first < last) coming = load(first, 0);
  commit_copies();
  for (int x0 = first, stage = 0; x0 < last; x0 += directed_columns, stage ^= 1) {
    wait_copies<0>();
    __syncthreads();
    const std::uint64_t seen = coming;
    if (x0 + directed_columns < last) coming = load(x0 + directed_columns, stage ^ 1);
    commit_copies();
    unsigned char* const at = memory + stage * Layout::stage;
    const Tile<Dim> tile{at}, values{at + Layout::values};
    if constexpr (Reading) {
      const int l = x0 + static_cast<int>(threadIdx.x);
      if (threadIdx.x < directed_columns) {
        const bool real = l < a.latents;
        const float add =
            a.shift == nullptr || !real ? 0.F : a.shift[std::int64_t{head} * a.latents + l];
        bias[threadIdx.x] = real ? add : -INFINITY;
      }
    } else {
      token_bias<Dim, T>(tile, seen, a.square, bias);
    }
    __syncthreads();

    float s[directed_columns / 8][4] = {};
    const Fragments<Dim> columns(tile);
#pragma unroll
    for (int k = 0; k < Dim / 16; ++k) {
#pragma unroll
      for (int n = 0; n < directed_columns / 16; ++n) {
        Word right[4];
        columns.right(right, n * 16, k * 16);
#pragma unroll
        for (int side = 0; side < sides; ++side) {
          multiply_add<T>(s[2 * n], rows[side][k], right[0], right[1]);
          multiply_add<T>(s[2 * n + 1], rows[side][k], right[2], right[3]);
        }
        if constexpr (Reading) {
          columns.right(right, directed_columns + n * 16, k * 16);  // of the lower halves
          multiply_add<T>(s[2 * n], rows[0][k], right[0], right[1]);
          multiply_add<T>(s[2 * n + 1], rows[0][k], right[2], right[3]);
        }
      }
    }
    float most[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int n = 0; n < directed_columns / 8; ++n) {
      const float2 add = *reinterpret_cast<const float2*>(bias + 8 * n + 2 * c);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        s[n][i] = fmaf(s[n][i], a.scale, i % 2 == 0 ? add.x : add.y);
        most[i / 2] = fmaxf(most[i / 2], s[n][i]);
      }
    }
    Word p[directed_columns / 8][2];
    float decay[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      most[r] = fmaxf(most[r], __shfl_xor_sync(~0u, most[r], 1));
      most[r] = fmaxf(most[r], __shfl_xor_sync(~0u, most[r], 2));
      most[r] = fmaxf(top[r], most[r] - N::lift);
      const float base = most[r] == -INFINITY ? 0.F : most[r];
      decay[r] = exp2_fast(top[r] - base);
      top[r] = most[r];
      sum[r] *= decay[r];
#pragma unroll
      for (int n = 0; n < directed_columns / 8; ++n) {
        p[n][r] = pack_pair<T>(exp2_fast(s[n][2 * r] - base), exp2_fast(s[n][2 * r + 1] - base));
        sum[r] += N::low(p[n][r]) + N::high(p[n][r]);  // as they were rounded
      }
    }
#pragma unroll
    for (int n = 0; n < Dim / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) o[n][i] *= decay[i / 2];
    }
    const Fragments<Dim> right_side(values);
#pragma unroll
    for (int k = 0; k < directed_columns / 16; ++k) {
      const Word left[4] = {p[2 * k][0], p[2 * k][1], p[2 * k + 1][0], p[2 * k + 1][1]};
#pragma unroll
      for (int n = 0; n < Dim / 16; ++n) {
        Word right[4];
        right_side.right_transposed(right, 16 * k, n * 16);
        multiply_add<T>(o[2 * n], left, right[0], right[1]);
        multiply_add<T>(o[2 * n + 1], left, right[2], right[3]);
      }
    }
  }

#pragma unroll
  for (int r = 0; r < 2; ++r) {
    sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
    sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
  }
  if constexpr (Reading) {
    const float factor[2] = {sum[0] > 0 ? __fdividef(1.F, sum[0]) : 0.F,
                             sum[1] > 0 ? __fdividef(1.F, sum[1]) : 0.F};
    __syncthreads();  // all have done with the stages, where results are put in order
    store_results<T, Dim>(a.out, a.length, a.out_pieces, o, factor,
                          Tile<Dim>{memory + warp * 16 * Dim * 2}, a.out.at(b, h, 0) + column, row0,
                          min(Dim, a.value_dim - column));
  } else {
    // A block's rows are a group of PoolMerge's.
    const int before = row_block * directed_rows, width = min(directed_rows, a.latents - before);
    const std::int64_t origin = (std::int64_t{a.all_heads} * a.segments) * before +
                                (std::int64_t{head} * a.segments + segment) * width;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int within = 16 * warp + g + 8 * r;
      if (within >= width) continue;
      float* const to = a.to.sum + (origin + within) * a.value_dim;
#pragma unroll
      for (int n = 0; n < Dim / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int d = column + 8 * n + 2 * c + i;
          if (d < a.value_dim) to[d] = o[n][2 * r + i];
        }
      }
      if (column != 0 || c != 0) continue;
      a.to.total[origin + within] = sum[r];
      a.to.maximum[origin + within] = top[r];
    }
  }
}

/// Directions [heads or 1, latents, dim] as sums of two numbers of T, [heads or 1, padded, Dim].
template <class T>
__global__ void split_directions(Rows<const float> from, T* upper, T* lower, int latents, int dim,
                                 int padded, int wide, std::int64_t numbers) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= numbers) return;
  const int d = static_cast<int>(i % wide), l = static_cast<int>(i / wide % padded);
  const float x = l < latents && d < dim ? from.at(0, i / wide / padded, l)[d] : 0.F;
  narrow_number(x, upper[i]);
  narrow_number(x - widen_number(upper[i]), lower[i]);
}

}  // namespace attnbench::kernels::cuda
