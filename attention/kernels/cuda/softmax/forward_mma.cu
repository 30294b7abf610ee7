// Tiled softmax on the tensor cores: Dao 2023 (FlashAttention-2). One block computes a tile of
// queries against the keys that they see; each warp owns whole rows of it, so that scores stay in
// registers from the first product through the softmax into the second. The next tile of keys and
// values is copied while this one is computed, with one barrier a tile.
#include <limits>

#include "attention/kernels/cuda/softmax/tiles.cuh"

namespace attnbench::kernels::cuda {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

template <int Width>
struct ForwardTiles {
  static constexpr int width = Width;
  static constexpr int threads = 128;
  static constexpr int m_tiles = 2;  ///< of 16 queries, of one warp
  static constexpr int rows = 16 * m_tiles * threads / 32;
  static constexpr int keys = 64;                     ///< that are copied at once
  static constexpr int part = Width == 64 ? 64 : 32;  ///< whose scores are in registers at once
  static constexpr int query_bytes = rows * 2 * width;
  static constexpr int key_bytes = keys * 2 * width;
  static constexpr int shared_bytes = query_bytes + 4 * key_bytes;
};

/// The greatest of the four lanes that share a row.
__device__ inline float row_greatest(float x) {
  x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
  return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}
__device__ inline float row_sum(float x) {
  x += __shfl_xor_sync(~0u, x, 1);
  return x + __shfl_xor_sync(~0u, x, 2);
}

/// Scores become weights relative to each row's base (Milakov and Gimelshein 2018); the output so
/// far moves with the base. That follows the row's greatest score, but only when it has grown by
/// more than 2^8: weights up to 256 lose nothing, and the output is rarely rescaled.
template <int MTiles, int NTiles, int WidthTiles>
__device__ inline void weigh(float (&scores)[MTiles][NTiles][4], float (&base)[MTiles][2],
                             float (&sum)[MTiles][2], float (&out)[MTiles][WidthTiles][4],
                             float scale) {
  float factor[MTiles][2];
  bool moves = false;
#pragma unroll
  for (int m = 0; m < MTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float greatest = scores[m][0][2 * half];
#pragma unroll
      for (int n = 0; n < NTiles; ++n) {
        greatest = fmaxf(greatest, fmaxf(scores[m][n][2 * half], scores[m][n][2 * half + 1]));
      }
      greatest = row_greatest(greatest) * scale;
      const bool grown = greatest > base[m][half] + 8;
      factor[m][half] = grown ? exp2_fast(base[m][half] - greatest) : 1;
      if (grown) base[m][half] = greatest;
      moves = moves || grown;
      sum[m][half] *= factor[m][half];
    }
  }
  if (__any_sync(~0u, moves)) {
#pragma unroll
    for (int m = 0; m < MTiles; ++m) {
#pragma unroll
      for (int n = 0; n < WidthTiles; ++n) {
#pragma unroll
        for (int e = 0; e < 4; ++e) out[m][n][e] *= factor[m][e / 2];
      }
    }
  }
#pragma unroll
  for (int m = 0; m < MTiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      // A row that has seen no key must not compute infinity minus infinity.
      const float from = base[m][half] == -infinity ? 0 : base[m][half];
#pragma unroll
      for (int n = 0; n < NTiles; ++n) {
#pragma unroll
        for (int e = 2 * half; e < 2 * half + 2; ++e) {
          scores[m][n][e] = exp2_fast(fmaf(scores[m][n][e], scale, -from));
          sum[m][half] += scores[m][n][e];
        }
      }
    }
  }
}

template <class T, class C>
__global__ void __launch_bounds__(C::threads, 2)
    softmax_forward_kernel(const __grid_constant__ SoftmaxCall<T> call) {
  ATTNBENCH_SHARED(unsigned char, shared, 128);
  const SoftmaxShape& shape = call.shape;
  const Band& band = shape.band;
  // The last queries, which see the most keys where the band ends with the diagonal, go first.
  const int blocks = (band.length + C::rows - 1) / C::rows;
  const Place here = place(static_cast<int>(blockIdx.x), shape.batch * shape.heads, blocks);
  const int b = here.head / shape.heads, h = here.head % shape.heads;
  const int t0 = (blocks - 1 - here.block) * C::rows;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int warp_row = thread / 32 * 16 * C::m_tiles;
  const int query0 = t0 + warp_row;
  const int query1 = Band::lesser(query0 + 16 * C::m_tiles, band.length);

  const HeadRows<T> q{call.arrays.q, b, h, band.length, shape.head_dim};
  const HeadRows<T> k{call.arrays.k, b, h / shape.group, band.key_length, shape.head_dim};
  const HeadRows<T> v{call.arrays.v, b, h / shape.group, band.key_length, shape.value_dim};
  const Range range = tiles(band.keys(t0, Band::lesser(t0 + C::rows, band.length)), C::keys);
  unsigned char* const keys = shared + C::query_bytes;
  const auto load_keys = [&](int tile, int stage) {
    unsigned char* const to = keys + stage * 2 * C::key_bytes;
    load_rows<C::keys, C::width, C::threads>(to, k, tile * C::keys);
    load_rows<C::keys, C::width, C::threads>(to + C::key_bytes, v, tile * C::keys);
  };
  load_rows<C::rows, C::width, C::threads>(shared, q, t0);
  if (range.begin < range.end) load_keys(range.begin, 0);
  commit_copies();
  if (shape.scale < 0 || range.begin >= range.end) {
    wait_copies<0>();
    __syncthreads();
    // A negative scale is a positive one with -q: the greatest product is then the greatest logit.
    for (int i = thread; shape.scale < 0 && i < C::query_bytes / 4; i += C::threads) {
      reinterpret_cast<std::uint32_t*>(shared)[i] ^= 0x80008000u;
    }
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
      load_keys(tile + 1, stage ^ 1);
      commit_copies();
    }
    const std::uint32_t k_tile = shared_address(keys + stage * 2 * C::key_bytes);
#pragma unroll 1
    for (int part = 0; part < C::keys; part += C::part) {
      const int s0 = tile * C::keys + part;
      if (band.none(query0, query1, s0, s0 + C::part)) continue;
      float scores[C::m_tiles][C::part / 8][4];
      clear(scores);
      multiply_rows<T, C::width>(scores, q_lane, Shared::lane_crossed(k_tile, part));
      if (call.arrays.key_mask != nullptr || !band.full(query0, query1, s0, s0 + C::part)) {
        hide<false>(scores, band, key_mask(call.arrays, b), query0 + lane / 4, s0 + lane % 4 * 2,
                    -infinity);
      }
      weigh(scores, base, sum, out, shape.magnitude);
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
      const int t = query0 + 16 * m + 8 * half + lane / 4;
      if (call.arrays.lse != nullptr && lane % 4 == 0 && t < band.length) {
        call.arrays.lse[static_cast<std::int64_t>(here.head) * band.length + t] =
            total == 0 ? infinity : (base[m][half] + log2f(total)) * 0.69314718056f;
      }
    }
  }
  store_rows<T, C::width>(call.arrays.out, b, h, query0, band.length, shape.value_dim, out, factor,
                          shared + warp_row * Shared::row_bytes);
}

template <class C, class T>
bool forward(const SoftmaxCall<T>& call, Stream stream) {
  static_assert(C::shared_bytes <= least_shared);
  const SoftmaxShape& shape = call.shape;
  const std::int64_t blocks = (shape.band.length + C::rows - 1) / C::rows;
  launch(softmax_forward_kernel<T, C>,
         dim3(static_cast<unsigned>(std::int64_t{shape.batch} * shape.heads * blocks)),
         dim3(C::threads), C::shared_bytes, stream, call);
  return true;
}

}  // namespace

template <class T>
bool softmax_forward_mma(const SoftmaxCall<T>& call, Stream stream) {
  if (!aligned(call.arrays, call.shape)) return false;
  switch (tile_width(call.shape)) {
    case 64:
      return forward<ForwardTiles<64>>(call, stream);
    case 128:
      return forward<ForwardTiles<128>>(call, stream);
    default:
      return false;
  }
}

template bool softmax_forward_mma(const SoftmaxCall<BFloat16>&, Stream);
template bool softmax_forward_mma(const SoftmaxCall<Half>&, Stream);

}  // namespace attnbench::kernels::cuda
