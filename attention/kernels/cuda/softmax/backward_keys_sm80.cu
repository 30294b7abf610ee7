// dk and dv of the tiled softmax: Dao 2023 (FlashAttention-2), with the products transposed. One
// block holds a tile of keys and passes over the queries that see it, of every head of the group:
// sums stay in registers, nothing is added in memory, the bits are the same every time. Each warp
// owns whole rows of keys, so that the transposed weights, and their gradients, are left operands
// of the next products where they are: in registers.
//
// At a width of 256 the registers hold one gradient only: two passes, of which the one for dv does
// without the values.
#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/softmax/call.hpp"
#include "attention/kernels/cuda/softmax/sm80.cuh"

namespace attnbench::kernels::cuda {
namespace {

template <int Width_, int Warps_, int MTiles_, int Queries_, int Part_, int Blocks_, bool Dk_,
          bool Dv_>
struct Config {
  static constexpr int width = Width_;
  static constexpr int warps = Warps_;
  static constexpr int m_tiles = MTiles_;   ///< of 16 keys, of one warp
  static constexpr int queries = Queries_;  ///< that are copied at once
  static constexpr int part = Part_;        ///< whose scores are in registers at once
  static constexpr int blocks = Blocks_;    ///< that should fit on one multiprocessor
  static constexpr bool dk = Dk_;
  static constexpr bool dv = Dv_;
  static constexpr int threads = 32 * warps;
  static constexpr int keys = 16 * m_tiles * warps;
  static constexpr int key_bytes = keys * 2 * width;
  static constexpr int query_bytes = queries * 2 * width;
  static constexpr int shared_bytes = 2 * key_bytes + 4 * query_bytes;
};

/// The weights of keys s, s + 8, … and queries t, t + 1, … from their products; 0 where hidden.
template <int MTiles, int NTiles>
__device__ inline void weigh(float (&scores)[MTiles][NTiles][4], const float* lse, float scale) {
#pragma unroll
  for (int n = 0; n < NTiles; ++n) {
    const float2 sums = *reinterpret_cast<const float2*>(lse + 8 * n);
#pragma unroll
    for (int m = 0; m < MTiles; ++m) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        scores[m][n][e] = exp2_fast(fmaf(scores[m][n][e], scale, e % 2 == 0 ? -sums.x : -sums.y));
      }
    }
  }
}

template <int MTiles, int NTiles>
__device__ inline void hide(float (&weights)[MTiles][NTiles][4], const Band& band,
                            const std::uint8_t* mask, int s, int t) {
  keep_here(s);
#pragma unroll
  for (int m = 0; m < MTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int key = s + 16 * m + 8 * half;
      const bool real = mask == nullptr || (key < band.key_length && mask[key] != 0);
#pragma unroll
      for (int n = 0; n < NTiles; ++n) {
        if (!real || !band.sees(t + 8 * n, key)) weights[m][n][2 * half] = 0;
        if (!real || !band.sees(t + 8 * n + 1, key)) weights[m][n][2 * half + 1] = 0;
      }
    }
  }
}

/// The gradients of weights become those of scores.
template <int MTiles, int NTiles>
__device__ inline void differentiate(float (&gradients)[MTiles][NTiles][4],
                                     const float (&weights)[MTiles][NTiles][4],
                                     const float* delta) {
#pragma unroll
  for (int n = 0; n < NTiles; ++n) {
    const float2 deltas = *reinterpret_cast<const float2*>(delta + 8 * n);
#pragma unroll
    for (int m = 0; m < MTiles; ++m) {
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        gradients[m][n][e] =
            weights[m][n][e] * (gradients[m][n][e] - (e % 2 == 0 ? deltas.x : deltas.y));
      }
    }
  }
}

template <class T, class C, bool Aligned>
__global__ void __launch_bounds__(C::threads, C::blocks)
    backward_keys_kernel(const __grid_constant__ SoftmaxBackwardCall<T> call) {
  ATTNBENCH_SHARED(unsigned char, shared, 128);
  const SoftmaxShape& shape = call.shape;
  const Band& band = shape.band;
  // The first keys, which the most queries see where the band ends with the diagonal, go first.
  const int blocks = (band.key_length + C::keys - 1) / C::keys;
  const Place mine = place(static_cast<int>(blockIdx.x), shape.batch * shape.kv_heads, blocks);
  const int b = mine.head / shape.kv_heads;
  const int kv = mine.head % shape.kv_heads;
  const int s0 = mine.block * C::keys;
  const int thread = static_cast<int>(threadIdx.x);
  const int lane = thread % 32;
  const int warp_row = thread / 32 * 16 * C::m_tiles;
  const int key0 = s0 + warp_row;
  const float scale = shape.negative ? -shape.scale : shape.scale;

  unsigned char* const values = shared + C::key_bytes;
  unsigned char* const queries = values + C::key_bytes;
  const HeadRows<T> k{call.arrays.k, b, kv, band.key_length, shape.head_dim};
  const HeadRows<T> v{call.arrays.v, b, kv, band.key_length, shape.value_dim};
  load_rows<C::keys, C::width, C::threads, Aligned>(shared, k, s0, thread);
  if constexpr (C::dk) load_rows<C::keys, C::width, C::threads, Aligned>(values, v, s0, thread);

  const Range range =
      tiles(band.queries(s0, Band::lesser(s0 + C::keys, band.key_length)), C::queries);
  const int last_head = range.begin < range.end ? (kv + 1) * shape.group : 0;
  const auto load_queries = [&](int h, int tile, int stage) {
    const HeadRows<T> q{call.arrays.q, b, h, band.length, shape.head_dim};
    const HeadRows<T> d_out{call.gradients.d_out, b, h, band.length, shape.value_dim};
    unsigned char* const to = queries + stage * 2 * C::query_bytes;
    load_rows<C::queries, C::width, C::threads, Aligned>(to, q, tile * C::queries, thread);
    load_rows<C::queries, C::width, C::threads, Aligned>(to + C::query_bytes, d_out,
                                                         tile * C::queries, thread);
  };
  int h = kv * shape.group;
  int tile = range.begin;
  if (h < last_head) load_queries(h, tile, 0);
  commit_copies();

  using Shared = SharedTile<C::width>;
  const unsigned k_lane = Shared::lane_straight(shared_address(shared), warp_row);
  const unsigned v_lane = Shared::lane_straight(shared_address(values), warp_row);
  // The one that is not asked for has no use, and no register.
  float dk[C::m_tiles][C::width / 8][4];
  float dv[C::m_tiles][C::width / 8][4];
  clear(dk);
  clear(dv);

  for (int stage = 0; h < last_head; stage ^= 1) {
    wait_copies<0>();
    __syncthreads();
    const int here = tile * C::queries;
    const std::int64_t row0 = std::int64_t{b * shape.heads + h} * call.padded_length;
    if (++tile == range.end) {
      tile = range.begin;
      ++h;
    }
    if (h < last_head) {
      load_queries(h, tile, stage ^ 1);
      commit_copies();
    }
    const std::uint32_t q_tile = shared_address(queries + stage * 2 * C::query_bytes);
    const std::uint32_t d_out_tile = q_tile + C::query_bytes;
#pragma unroll 1
    for (int part = 0; part < C::queries; part += C::part) {
      const int t0 = here + part;
      const int t1 = Band::lesser(t0 + C::part, band.length);
      if (t1 <= t0 || band.none(t0, t1, key0, key0 + 16 * C::m_tiles)) continue;
      const std::int64_t row = row0 + t0 + lane % 4 * 2;
      float weights[C::m_tiles][C::part / 8][4];
      clear(weights);
      multiply_rows<T, C::width>(weights, k_lane, Shared::lane_crossed(q_tile, part));
      weigh(weights, call.lse + row, scale);
      if (call.arrays.key_mask != nullptr || !band.full(t0, t1, key0, key0 + 16 * C::m_tiles)) {
        hide(weights, band, key_mask(call.arrays, b), key0 + lane / 4, t0 + lane % 4 * 2);
      }
      if constexpr (C::dv) {
        multiply_weights<T, C::width>(dv, weights, Shared::lane_straight(d_out_tile, part));
      }
      if constexpr (C::dk) {
        float gradients[C::m_tiles][C::part / 8][4];
        clear(gradients);
        multiply_rows<T, C::width>(gradients, v_lane, Shared::lane_crossed(d_out_tile, part));
        differentiate(gradients, weights, call.delta + row);
        multiply_weights<T, C::width>(dk, gradients, Shared::lane_straight(q_tile, part));
      }
    }
  }

  wait_copies<0>();
  __syncthreads();
  float factor[C::m_tiles][2];
  const auto store = [&](const Rows<T>& to, int width, const auto& sum, float by,
                         unsigned char* own) {
#pragma unroll
    for (int m = 0; m < C::m_tiles; ++m) factor[m][0] = factor[m][1] = by;
    store_rows<T, C::width, Aligned>(to, b, kv, key0, band.key_length, width, sum, factor,
                                     own + warp_row * Shared::row_bytes);
  };
  if constexpr (C::dk) store(call.gradients.dk, shape.head_dim, dk, shape.true_scale, shared);
  if constexpr (C::dv) store(call.gradients.dv, shape.value_dim, dv, 1, values);
}

template <class T, class C>
void backward(const SoftmaxSizes& sizes, const SoftmaxBackwardCall<T>& call, Stream stream) {
  require_shared(C::shared_bytes);
  const std::int64_t blocks =
      sizes.batch * sizes.kv_heads * ((sizes.key_length + C::keys - 1) / C::keys);
  launch(
      aligned(sizes, call) ? backward_keys_kernel<T, C, true> : backward_keys_kernel<T, C, false>,
      dim3(static_cast<unsigned>(blocks)), dim3(C::threads), C::shared_bytes, stream, call);
}

}  // namespace

template <class T>
void softmax_backward_keys_sm80(const SoftmaxSizes& sizes, const SoftmaxBackwardCall<T>& call,
                                Stream stream) {
  switch (tile_width(sizes)) {
    case 64:
      return backward<T, Config<64, 4, 2, 64, 32, 2, true, true>>(sizes, call, stream);
    case 128:
      return backward<T, Config<128, 8, 1, 64, 32, 1, true, true>>(sizes, call, stream);
    default:
      backward<T, Config<256, 4, 1, 32, 32, 1, false, true>>(sizes, call, stream);
      backward<T, Config<256, 4, 1, 32, 32, 1, true, false>>(sizes, call, stream);
  }
}

template void softmax_backward_keys_sm80(const SoftmaxSizes&, const SoftmaxBackwardCall<BFloat16>&,
                                         Stream);
template void softmax_backward_keys_sm80(const SoftmaxSizes&, const SoftmaxBackwardCall<Half>&,
                                         Stream);

}  // namespace attnbench::kernels::cuda
