// dq of the tiled softmax: one block holds a tile of queries and passes over the keys that they
// see, once more computing the weights and their gradients. A pass of its own costs two products
// more than adding to dq in memory from the pass over keys would, and gives the same bits every
// time.
#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/softmax/call.hpp"
#include "attention/kernels/cuda/softmax/sm80.cuh"

namespace attnbench::kernels::cuda {
namespace {

template <int Width_, int Warps_, int MTiles_, int Keys_, int Part_, int Blocks_>
struct Config {
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
  static constexpr int shared_bytes = 2 * query_bytes + 4 * key_bytes;
};

/// Products of queries with keys, and of output gradients with values, become the gradients of the
/// scores. Queries t, t + 8, …; keys s, s + 1, ….
template <int MTiles, int NTiles>
__device__ inline void differentiate(float (&scores)[MTiles][NTiles][4],
                                     const float (&gradients)[MTiles][NTiles][4],
                                     const float (&lse)[MTiles][2], const float (&delta)[MTiles][2],
                                     float scale) {
#pragma unroll
  for (int m = 0; m < MTiles; ++m) {
#pragma unroll
    for (int n = 0; n < NTiles; ++n) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float weight = exp2_fast(fmaf(scores[m][n][e], scale, -lse[m][e / 2]));
        scores[m][n][e] = weight * (gradients[m][n][e] - delta[m][e / 2]);
      }
    }
  }
}

template <class T, class C, bool Aligned>
__global__ void __launch_bounds__(C::threads, C::blocks)
    backward_queries_kernel(const __grid_constant__ SoftmaxBackwardCall<T> call) {
  ATTNBENCH_SHARED(unsigned char, shared, 128);
  const SoftmaxShape& shape = call.shape;
  const Band& band = shape.band;
  const int blocks = (band.length + C::rows - 1) / C::rows;
  const Place here = place(static_cast<int>(blockIdx.x), shape.batch * shape.heads, blocks);
  const int head = here.head;
  const int b = head / shape.heads;
  const int h = head % shape.heads;
  const int t0 = (blocks - 1 - here.block) * C::rows;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp_row = thread / 32 * 16 * C::m_tiles;
  const int query0 = t0 + warp_row;
  const int query1 = Band::lesser(query0 + 16 * C::m_tiles, band.length);
  const float scale = shape.negative ? -shape.scale : shape.scale;

  const HeadRows<T> q{call.arrays.q, b, h, band.length, shape.head_dim};
  const HeadRows<T> d_out{call.gradients.d_out, b, h, band.length, shape.value_dim};
  const HeadRows<T> k{call.arrays.k, b, h / shape.group, band.key_length, shape.head_dim};
  const HeadRows<T> v{call.arrays.v, b, h / shape.group, band.key_length, shape.value_dim};
  unsigned char* const d_outs = shared + C::query_bytes;
  unsigned char* const keys = d_outs + C::query_bytes;
  const Range range = tiles(band.keys(t0, Band::lesser(t0 + C::rows, band.length)), C::keys);
  const auto load_keys = [&](int tile, int stage) {
    unsigned char* const to = keys + stage * 2 * C::key_bytes;
    load_rows<C::keys, C::width, C::threads, Aligned>(to, k, tile * C::keys, thread);
    load_rows<C::keys, C::width, C::threads, Aligned>(to + C::key_bytes, v, tile * C::keys, thread);
  };
  load_rows<C::rows, C::width, C::threads, Aligned>(shared, q, t0, thread);
  load_rows<C::rows, C::width, C::threads, Aligned>(d_outs, d_out, t0, thread);
  if (range.begin < range.end) load_keys(range.begin, 0);
  commit_copies();

  float lse[C::m_tiles][2], delta[C::m_tiles][2];
#pragma unroll
  for (int m = 0; m < C::m_tiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t row =
          std::int64_t{head} * call.padded_length + query0 + 16 * m + 8 * half + lane / 4;
      lse[m][half] = call.lse[row];
      delta[m][half] = call.delta[row];
    }
  }

  using Shared = SharedTile<C::width>;
  const unsigned q_lane = Shared::lane_straight(shared_address(shared), warp_row);
  const unsigned d_out_lane = Shared::lane_straight(shared_address(d_outs), warp_row);
  float dq[C::m_tiles][C::width / 8][4];
  clear(dq);
  int stage = 0;
  for (int tile = range.begin; tile < range.end; ++tile, stage ^= 1) {
    wait_copies<0>();
    __syncthreads();
    if (tile + 1 < range.end) {
      load_keys(tile + 1, stage ^ 1);
      commit_copies();
    }
    const unsigned k_tile = shared_address(keys + stage * 2 * C::key_bytes);
#pragma unroll 1
    for (int part = 0; part < C::keys; part += C::part) {
      const int s0 = tile * C::keys + part;
      if (band.none(query0, query1, s0, s0 + C::part)) continue;
      float scores[C::m_tiles][C::part / 8][4];
      float gradients[C::m_tiles][C::part / 8][4];
      clear(scores);
      clear(gradients);
      multiply_rows<T, C::width>(scores, q_lane, Shared::lane_crossed(k_tile, part));
      multiply_rows<T, C::width>(gradients, d_out_lane,
                                 Shared::lane_crossed(k_tile + C::key_bytes, part));
      differentiate(scores, gradients, lse, delta, scale);
      if (call.arrays.key_mask != nullptr || !band.full(query0, query1, s0, s0 + C::part)) {
        hide(scores, band, key_mask(call.arrays, b), query0 + lane / 4, s0 + lane % 4 * 2, 0);
      }
      multiply_weights<T, C::width>(dq, scores, Shared::lane_straight(k_tile, part));
    }
  }

  wait_copies<0>();
  __syncthreads();
  float factor[C::m_tiles][2];
#pragma unroll
  for (int m = 0; m < C::m_tiles; ++m) factor[m][0] = factor[m][1] = shape.true_scale;
  store_rows<T, C::width, Aligned>(call.gradients.dq, b, h, query0, band.length, shape.head_dim, dq,
                                   factor, shared + warp_row * Shared::row_bytes);
}

template <class T, class C, bool Aligned>
void backward(const SoftmaxSizes& sizes, const SoftmaxBackwardCall<T>& call, Stream stream) {
  require_shared(C::shared_bytes);
  const std::int64_t blocks = sizes.batch * sizes.heads * ((sizes.length + C::rows - 1) / C::rows);
  launch(backward_queries_kernel<T, C, Aligned>, dim3(static_cast<unsigned>(blocks)),
         dim3(C::threads), C::shared_bytes, stream, call);
}

/// Rows that begin anywhere are copied by way of registers, for which Guarded leaves room.
template <class T, class C, class Guarded = C>
void choose(const SoftmaxSizes& sizes, const SoftmaxBackwardCall<T>& call, Stream stream) {
  if (aligned(sizes, call)) return backward<T, C, true>(sizes, call, stream);
  backward<T, Guarded, false>(sizes, call, stream);
}

}  // namespace

template <class T>
void softmax_backward_queries_sm80(const SoftmaxSizes& sizes, const SoftmaxBackwardCall<T>& call,
                                   Stream stream) {
  switch (tile_width(sizes)) {
    case 64:
      return choose<T, Config<64, 4, 2, 64, 32, 2>>(sizes, call, stream);
    case 128:
      return choose<T, Config<128, 4, 2, 32, 32, 2>, Config<128, 4, 1, 32, 32, 2>>(sizes, call,
                                                                                   stream);
    default:
      return choose<T, Config<256, 4, 1, 32, 32, 1>>(sizes, call, stream);
  }
}

template void softmax_backward_queries_sm80(const SoftmaxSizes&,
                                            const SoftmaxBackwardCall<BFloat16>&, Stream);
template void softmax_backward_queries_sm80(const SoftmaxSizes&, const SoftmaxBackwardCall<Half>&,
                                            Stream);

}  // namespace attnbench::kernels::cuda
