// Tiled softmax on Ampere's tensor cores: Dao 2023 (FlashAttention-2). One block computes a tile of
// queries against the keys that they see; each warp owns whole rows of it, so that scores stay in
// registers from the first product through the softmax into the second. The next tile of keys and
// values is copied while this one is computed, with one barrier a tile.
#pragma once

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/softmax/bias.hpp"
#include "attention/kernels/cuda/softmax/call.hpp"
#include "attention/kernels/cuda/softmax/sm80.cuh"
#include "attention/kernels/cuda/softmax/weights.cuh"

namespace attnbench::kernels::cuda {

template <int Width_, int Warps_, int MTiles_, int Keys_, int Part_, int Blocks_>
struct ForwardConfig {
  static constexpr int width = Width_;
  static constexpr int warps = Warps_;
  static constexpr int m_tiles = MTiles_;  ///< of 16 queries, of one warp
  static constexpr int keys = Keys_;       ///< that are copied at once
  static constexpr int part = Part_;       ///< whose scores are in registers at once
  static constexpr int blocks = Blocks_;   ///< that should fit on one multiprocessor
  static constexpr int threads = 32 * warps;
  static constexpr int rows = 16 * m_tiles * warps;
  static constexpr int query_bytes = rows * 2 * width;
  static constexpr int key_bytes = keys * 2 * width;
  static constexpr int shared_bytes = query_bytes + 4 * key_bytes;
};

template <class T>
struct ForwardCall {
  SoftmaxArguments<T> arrays;
  SoftmaxShape shape;
  SoftmaxBias bias;
  float bias_unit = 0;  ///< that turns biases into scores
};

/// What products are added to: the biases of their distances, of which `distance` is the lane's
/// first, times `unit`. A lane has few of them: its rows are eight apart, and its columns too.
template <int MTiles, int NTiles>
__device__ inline void begin_with_bias(float (&scores)[MTiles][NTiles][4], const SoftmaxBias& bias,
                                       int distance, float unit) {
#pragma unroll
  for (int k = 1 - 2 * MTiles; k < NTiles; ++k) {
    const float x[2] = {unit * bias.near(distance + 8 * k), unit * bias.near(distance + 8 * k + 1)};
#pragma unroll
    for (int row = 0; row < 2 * MTiles; ++row) {
      const int n = k + row;
      if (n < 0 || n >= NTiles) continue;
#pragma unroll
      for (int e = 0; e < 2; ++e) scores[row / 2][n][row % 2 * 2 + e] = x[e];
    }
  }
}

template <class T, class C, bool Aligned, bool Biased>
__global__ void __launch_bounds__(C::threads, C::blocks)
    softmax_forward_kernel(const __grid_constant__ ForwardCall<T> call) {
  ATTNBENCH_SHARED(unsigned char, shared, 128);
  const SoftmaxShape& shape = call.shape;
  const Band& band = shape.band;
  // The last queries, which see the most keys where the band ends with the diagonal, go first.
  const int blocks = (band.length + C::rows - 1) / C::rows;
  const Place here = place(static_cast<int>(blockIdx.x), shape.batch * shape.heads, blocks);
  const int head = here.head;
  const int b = head / shape.heads;
  const int h = head % shape.heads;
  const int t0 = (blocks - 1 - here.block) * C::rows;
  const int thread = static_cast<int>(threadIdx.x);
  const int warp = thread / 32;
  const int warp_row = warp * 16 * C::m_tiles;
  const int warp_end = Band::lesser(t0 + warp_row + 16 * C::m_tiles, band.length);
  const int lane = thread % 32;

  const HeadRows<T> q{call.arrays.q, b, h, band.length, shape.head_dim};
  const HeadRows<T> k{call.arrays.k, b, h / shape.group, band.key_length, shape.head_dim};
  const HeadRows<T> v{call.arrays.v, b, h / shape.group, band.key_length, shape.value_dim};

  const Range range = tiles(band.keys(t0, Band::lesser(t0 + C::rows, band.length)), C::keys);
  unsigned char* const keys = shared + C::query_bytes;
  load_rows<C::rows, C::width, C::threads, Aligned>(shared, q, t0, thread);
  if (range.begin < range.end) {
    load_rows<C::keys, C::width, C::threads, Aligned>(keys, k, range.begin * C::keys, thread);
    load_rows<C::keys, C::width, C::threads, Aligned>(keys + C::key_bytes, v, range.begin * C::keys,
                                                      thread);
  }
  commit_copies();
  if (shape.negative || range.begin >= range.end) {
    wait_copies<0>();
    __syncthreads();
    if (shape.negative) negate_rows<C::rows, C::width>(shared, thread, C::threads);
  }

  using Shared = SharedTile<C::width>;
  const unsigned q_lane = Shared::lane_straight(shared_address(shared), warp_row);
  float out[C::m_tiles][C::width / 8][4];
  float base[C::m_tiles][2], sum[C::m_tiles][2];
  clear(out);
#pragma unroll
  for (int m = 0; m < C::m_tiles; ++m) {
    base[m][0] = base[m][1] = -infinity;
    sum[m][0] = sum[m][1] = 0;
  }

  int stage = 0;
  for (int tile = range.begin; tile < range.end; ++tile, stage ^= 1) {
    wait_copies<0>();
    __syncthreads();
    if (tile + 1 < range.end) {
      unsigned char* const next = keys + (stage ^ 1) * 2 * C::key_bytes;
      load_rows<C::keys, C::width, C::threads, Aligned>(next, k, (tile + 1) * C::keys, thread);
      load_rows<C::keys, C::width, C::threads, Aligned>(next + C::key_bytes, v,
                                                        (tile + 1) * C::keys, thread);
      commit_copies();
    }
    const std::uint32_t k_tile = shared_address(keys + stage * 2 * C::key_bytes);
#pragma unroll 1
    for (int part = 0; part < C::keys; part += C::part) {
      const int s0 = tile * C::keys + part;
      if (band.none(t0 + warp_row, warp_end, s0, s0 + C::part)) continue;
      float scores[C::m_tiles][C::part / 8][4];
      if constexpr (Biased) {
        begin_with_bias(scores, call.bias, s0 + lane % 4 * 2 - (t0 + warp_row + lane / 4),
                        call.bias_unit);
      } else {
        clear(scores);
      }
      multiply_rows<T, C::width>(scores, q_lane, Shared::lane_crossed(k_tile, part));
      if (call.arrays.key_mask != nullptr ||
          !band.full(t0 + warp_row, warp_end, s0, s0 + C::part)) {
        hide(scores, band, key_mask(call.arrays, b), t0 + warp_row + lane / 4, s0 + lane % 4 * 2,
             -infinity);
      }
      weigh(scores, base, sum, out, shape.scale);
      multiply_weights<T, C::width>(out, scores,
                                    Shared::lane_straight(k_tile + C::key_bytes, part));
    }
  }

  float factor[C::m_tiles][2];
#pragma unroll
  for (int m = 0; m < C::m_tiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float total = row_sum(sum[m][half]);
      factor[m][half] = total == 0 ? 0 : 1 / total;
      const int t = t0 + warp_row + 16 * m + 8 * half + lane / 4;
      if (call.arrays.lse != nullptr && lane % 4 == 0 && t < band.length) {
        call.arrays.lse[static_cast<std::int64_t>(head) * band.length + t] =
            total == 0 ? infinity : (base[m][half] + log2f(total)) * 0.69314718056f;
      }
    }
  }
  store_rows<T, C::width, Aligned>(call.arrays.out, b, h, t0 + warp_row, band.length,
                                   shape.value_dim, out, factor,
                                   shared + warp_row * Shared::row_bytes);
}

template <class C, bool Biased, class T>
void launch_forward_sm80(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                         Stream stream) {
  require_shared(C::shared_bytes);
  const SoftmaxShape shape(sizes);
  const ForwardCall<T> call{arguments, shape, SoftmaxBias(sizes, arguments.bias),
                            1.44269504089F / shape.scale};
  const std::int64_t blocks = sizes.batch * sizes.heads * ((sizes.length + C::rows - 1) / C::rows);
  launch(aligned(sizes, arguments) ? softmax_forward_kernel<T, C, true, Biased>
                                   : softmax_forward_kernel<T, C, false, Biased>,
         dim3(static_cast<unsigned>(blocks)), dim3(C::threads), C::shared_bytes, stream, call);
}

/// Tiles of 64 and 128 columns.
using Forward64 = ForwardConfig<64, 4, 2, 64, 64, 2>;
using Forward128 = ForwardConfig<128, 4, 2, 64, 32, 2>;

}  // namespace attnbench::kernels::cuda
