// The forward pass that the recurrent families share, on the tensor cores. A block of threads takes
// one head, 16 columns of its values a warp, and one segment of its tokens, a chunk at a time:
//   W = tril(P E^T);   O^T = S^T P^T + V^T W^T;   S^T <- decay S^T + V^T E.
// S^T stays in registers as an accumulator, which is also the left operand that O^T needs of it.
// The next chunk is on its way while one is computed.
#pragma once

#include <type_traits>

#include "attention/kernels/cuda/recurrent/families.cuh"

namespace attnbench::kernels::cuda {

template <class Family, class T, int Latents, int Warps, bool Outputs>
struct ChunkLayout {
  static constexpr int threads = 32 * Warps, columns = 16 * Warps;
  static constexpr int stages = Latents > 128 ? 1 : 2;
  static constexpr int rows = chunk_tokens * Latents * 2;  // bytes of a tile of queries or keys
  static constexpr int query = 0;
  static constexpr int key = Outputs ? rows : 0;
  static constexpr int values = key + rows;
  static constexpr int stage = values + chunk_tokens * columns * 2;
  static constexpr int weights = stages * stage;                                    // P
  static constexpr int keys = weights + (Family::own_tiles && Outputs ? rows : 0);  // E
  static constexpr int inner = keys + (Family::own_tiles ? rows : 0);               // W
  static constexpr int vectors = inner + chunk_tokens * chunk_tokens * 2;
  static constexpr int unseen = vectors + (3 * Latents + 3 * chunk_tokens) * 4;
  static constexpr int bytes = unseen + (Family::decays && Outputs ? chunk_tokens * 4 : 0);
  // As many blocks of a multiprocessor as shared memory lets in, within what registers allow.
  static constexpr int fitting = 227 * 1024 / (bytes + 1024);
  static constexpr int most = (Latents <= 64 && !(Family::own_tiles && Outputs) ? 12 : 8) / Warps;
  static constexpr int blocks = fitting < most ? (fitting < 1 ? 1 : fitting) : most;
};

/// Bit t: whether row t0 + t is there and, where there is a mask, not hidden. For a whole warp.
__device__ inline std::uint64_t seen_rows(const std::uint8_t* mask, int rows) {
  if (mask == nullptr) return rows >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << rows) - 1;
  const int lane = threadIdx.x & 31;
  const unsigned low = __ballot_sync(~0u, lane < rows && mask[lane] != 0);
  const unsigned high = __ballot_sync(~0u, lane + 32 < rows && mask[lane + 32] != 0);
  return static_cast<std::uint64_t>(high) << 32 | low;
}

/// The rows of `seen` to a tile, zeros elsewhere.
template <int Columns, int Threads, class T>
__device__ inline void fetch(const Tile<Columns>& to, const T* from, std::int64_t stride, int width,
                             bool by_pieces, std::uint64_t seen) {
  constexpr int pieces = Columns / 8, rows = Threads / pieces;  // moved at once
  static_assert(rows % 8 == 0);  // so that the permutation is the same for all
  const int row = static_cast<int>(threadIdx.x) / pieces,
            piece = static_cast<int>(threadIdx.x) % pieces;
  const T* at = from + row * stride + piece * 8;
  if (by_pieces) {
    const Word address = anew(to.address(row, piece * 8));
    const bool inside = piece * 8 < width;
#pragma unroll
    for (int i = 0; i < chunk_tokens / rows; ++i, at += rows * stride) {
      const bool there = inside && has(seen, row + i * rows);
      copy_async(address + i * rows * Columns * 2, there ? at : from, there ? 16 : 0);
    }
    return;
  }
#pragma unroll 1
  for (int i = 0; i < chunk_tokens / rows; ++i, at += rows * stride) {
    const bool there = has(seen, row + i * rows);
    Word words[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int column = piece * 8 + 2 * j;
      const Word low = there && column < width ? at[2 * j].bits : 0;
      const Word high = there && column + 1 < width ? at[2 * j + 1].bits : 0;
      words[j] = low | high << 16;
    }
    to.piece(row + i * rows, piece) = make_uint4(words[0], words[1], words[2], words[3]);
  }
}

/// W of a warp's 16 rows, squares [first, last) of it, two at a time; and its share of the sums
/// that results are divided by: [2, chunk_tokens] `parts`. `Reverse`: of a token with those after
/// it instead of before. A row's products are multiplied by its number of `factors`, and a column's
/// by that of `shares`; without these, by Operand::shrink.
template <class Number, int Latents, int Most, bool Reverse = false>
__device__ inline void weigh(const ChunkView<Latents>& view, const Tile<chunk_tokens>& inner,
                             const Fragments<Latents>& weights, const Fragments<Latents>& keys,
                             float* parts, int row_square, int first, int last, int part,
                             bool normalised, const float* factors = nullptr,
                             const float* shares = nullptr) {
  using N = Operand<Number>;
  const int lane = threadIdx.x & 31, g = lane >> 2, c = lane & 3;
  const int row = row_square * 16 + g;
  const float by0 = factors == nullptr ? N::shrink : factors[row];
  const float by1 = factors == nullptr ? N::shrink : factors[row + 8];
  float sum0 = 0, sum1 = 0;
#pragma unroll
  for (int pass = 0; pass < Most; pass += 2) {
    if (pass > 0 && first + pass >= last) break;
    float w[2][2][4] = {};
#pragma unroll
    for (int k = 0; k < Latents / 16; ++k) {
      Word left[4];
      weights.left(left, row_square * 16, k * 16);
      if (pass == 0 && normalised && part == 0) {
        const float2 x = *reinterpret_cast<const float2*>(view.total + k * 16 + 2 * c);
        const float2 y = *reinterpret_cast<const float2*>(view.total + k * 16 + 8 + 2 * c);
        sum0 += N::low(left[0]) * x.x + N::high(left[0]) * x.y + N::low(left[2]) * y.x +
                N::high(left[2]) * y.y;
        sum1 += N::low(left[1]) * x.x + N::high(left[1]) * x.y + N::low(left[3]) * y.x +
                N::high(left[3]) * y.y;
      }
#pragma unroll
      for (int s = 0; s < 2; ++s) {
        if (first + pass + s < last) {
          Word right[4];
          keys.right(right, (first + pass + s) * 16, k * 16);
          multiply_add<Number>(w[s][0], left, right[0], right[1]);
          multiply_add<Number>(w[s][1], left, right[2], right[3]);
        }
      }
    }
#pragma unroll
    for (int s = 0; s < 2; ++s) {
      if (first + pass + s >= last) continue;
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int column = (first + pass + s) * 16 + n * 8 + 2 * c;
        float(&x)[4] = w[s][n];
        if (Reverse ? column < row : column > row) x[0] = 0;
        if (Reverse ? column + 1 < row : column + 1 > row) x[1] = 0;
        if (Reverse ? column < row + 8 : column > row + 8) x[2] = 0;
        if (Reverse ? column + 1 < row + 8 : column + 1 > row + 8) x[3] = 0;
        sum0 += x[0] + x[1];
        sum1 += x[2] + x[3];
        if (shares != nullptr) {
          const float2 share = *reinterpret_cast<const float2*>(shares + column);
          x[0] *= share.x;
          x[1] *= share.y;
          x[2] *= share.x;
          x[3] *= share.y;
        }
        inner.pair(row, column) = pack_pair<Number>(by0 * x[0], by0 * x[1]);
        inner.pair(row + 8, column) = pack_pair<Number>(by1 * x[2], by1 * x[3]);
      }
    }
  }
  if (!normalised) return;
#pragma unroll
  for (int i = 1; i < 4; i *= 2) {
    sum0 += __shfl_xor_sync(~0u, sum0, i);
    sum1 += __shfl_xor_sync(~0u, sum1, i);
  }
  if (c == 0) {
    parts[part * chunk_tokens + row] = sum0;
    parts[part * chunk_tokens + row + 8] = sum1;
  }
}

/// All of W, shared out to the warps.
template <class Number, int Latents, int Warps, bool Reverse = false>
__device__ inline void weigh_all(const ChunkView<Latents>& view, const Tile<chunk_tokens>& inner,
                                 float* parts, bool normalised, const float* factors = nullptr,
                                 const float* shares = nullptr) {
  const int warp = static_cast<int>(threadIdx.x >> 5);
  const Fragments<Latents> weights(view.weights), keys(view.keys);
  if constexpr (Warps == 8) {
    const int square = warp & 3, part = warp >> 2;
    const int first = Reverse ? square : 0, last = Reverse ? 4 : square + 1;
    const int half = (first + last + 1) / 2;
    weigh<Number, Latents, 2, Reverse>(view, inner, weights, keys, parts, square,
                                       part == 0 ? first : half, part == 0 ? half : last, part,
                                       normalised, factors, shares);
  } else {
#pragma unroll 1
    for (int square = warp; square < 4; square += Warps) {
      weigh<Number, Latents, 4, Reverse>(view, inner, weights, keys, parts, square,
                                         Reverse ? square : 0, Reverse ? 4 : square + 1, 0,
                                         normalised, factors, shares);
    }
  }
}

/// Powers of two that bring a warp's columns g and g + 8 of S into the range of numbers with few
/// exponents; 1 for others.
template <class Number, int Latents>
__device__ inline float2 into_range(const float (&s)[Latents / 8][4]) {
  if constexpr (!Operand<Number>::narrow) return make_float2(1, 1);
  float most0 = 0, most1 = 0;
#pragma unroll
  for (int j = 0; j < Latents / 8; ++j) {
    most0 = fmaxf(most0, fmaxf(fabsf(s[j][0]), fabsf(s[j][1])));
    most1 = fmaxf(most1, fmaxf(fabsf(s[j][2]), fabsf(s[j][3])));
  }
#pragma unroll
  for (int i = 1; i < 4; i *= 2) {
    most0 = fmaxf(most0, __shfl_xor_sync(~0u, most0, i));
    most1 = fmaxf(most1, __shfl_xor_sync(~0u, most1, i));
  }
  const auto inverse = [](float x) {  // 2^-floor(log2 x), within what is a normal number
    const int exponent = max(static_cast<int>(__float_as_uint(x) >> 23), 1);
    return __uint_as_float(static_cast<unsigned>(max(254 - exponent, 1)) << 23);
  };
  return make_float2(inverse(most0), inverse(most1));
}

/// O^T of a warp's 16 columns, not yet divided by anything; each token's times its factor, as W's
/// rows are.
template <class Number, int Latents, bool Reverse = false>
__device__ inline void read_out(float (&o)[8][4], const float (&s)[Latents / 8][4], float2 scale,
                                const Word (&values)[4][4], const Fragments<Latents>& weights,
                                const Fragments<chunk_tokens>& inner,
                                const float* factors = nullptr) {
  using N = Operand<Number>;
#pragma unroll
  for (int k = 0; k < Latents / 16; ++k) {
    const float(&x)[4] = s[2 * k];
    const float(&y)[4] = s[2 * k + 1];
    const Word left[4] = {pack_pair<Number>(scale.x * x[0], scale.x * x[1]),
                          pack_pair<Number>(scale.y * x[2], scale.y * x[3]),
                          pack_pair<Number>(scale.x * y[0], scale.x * y[1]),
                          pack_pair<Number>(scale.y * y[2], scale.y * y[3])};
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      Word right[4];
      weights.right(right, n * 16, k * 16);
      multiply_add<Number>(o[2 * n], left, right[0], right[1]);
      multiply_add<Number>(o[2 * n + 1], left, right[2], right[3]);
    }
  }
  if constexpr (N::narrow) {
    const float back0 = 1 / scale.x, back1 = 1 / scale.y;
#pragma unroll
    for (int n = 0; n < 8; ++n) {
      float2 by = make_float2(N::shrink, N::shrink);
      if (factors != nullptr) {
        by = *reinterpret_cast<const float2*>(factors + 8 * n + 2 * (threadIdx.x & 3));
      }
      o[n][0] *= back0 * by.x;
      o[n][1] *= back0 * by.y;
      o[n][2] *= back1 * by.x;
      o[n][3] *= back1 * by.y;
    }
  }
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (Reverse ? k < n : k > n) continue;  // later tokens, or earlier ones
      Word right[4];
      inner.right(right, n * 16, k * 16);
      multiply_add<Number>(o[2 * n], values[k], right[0], right[1]);
      multiply_add<Number>(o[2 * n + 1], values[k], right[2], right[3]);
    }
  }
}

/// S^T += V^T E; and, where they are tracked, the sums of E to `total`.
template <class Number, int Latents, int Warps>
__device__ inline void take_in(float (&s)[Latents / 8][4], const Word (&values)[4][4],
                               const Fragments<Latents>& keys, float* total, bool tracked) {
  const int lane = threadIdx.x & 31, warp = static_cast<int>(threadIdx.x >> 5);
  using N = Operand<Number>;
  constexpr int squares = Latents / 16, own = (squares + Warps - 1) / Warps;
  float sums[own][2] = {};
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int n = 0; n < squares; ++n) {
      Word right[4];
      keys.right_transposed(right, k * 16, n * 16);
      multiply_add<Number>(s[2 * n], values[k], right[0], right[1]);
      multiply_add<Number>(s[2 * n + 1], values[k], right[2], right[3]);
      if (tracked && n % Warps == warp) {
        float(&sum)[2] = sums[n / Warps];
        sum[0] += (N::low(right[0]) + N::high(right[0])) + (N::low(right[1]) + N::high(right[1]));
        sum[1] += (N::low(right[2]) + N::high(right[2])) + (N::low(right[3]) + N::high(right[3]));
      }
    }
  }
  if (!tracked) return;
#pragma unroll
  for (int j = 0; j < own; ++j) {
#pragma unroll
    for (int i = 1; i < 4; i *= 2) {
      sums[j][0] += __shfl_xor_sync(~0u, sums[j][0], i);
      sums[j][1] += __shfl_xor_sync(~0u, sums[j][1], i);
    }
    const int square = j * Warps + warp;
    if (square < squares && (lane & 3) == 0) {
      total[square * 16 + (lane >> 2)] += sums[j][0];
      total[square * 16 + 8 + (lane >> 2)] += sums[j][1];
    }
  }
}

}  // namespace attnbench::kernels::cuda
