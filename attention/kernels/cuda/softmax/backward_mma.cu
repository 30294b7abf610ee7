// The gradients of the tiled softmax on the tensor cores: Dao 2023 (FlashAttention-2), in two
// passes of which each adds up what its blocks own in registers: nothing is added in memory, the
// bits are the same every time. The pass over queries costs two products more than adding to dq in
// memory from the pass over keys would.
#include "attention/kernels/cuda/softmax/tiles.cuh"

namespace attnbench::kernels::cuda {
namespace {

/// A block has `own` rows, of keys or of queries, and passes over `others` at a time, of which
/// `part` have their scores in registers at once.
template <int Width, int Threads, int MTiles, int Others, int Blocks>
struct BackwardTiles {
  static constexpr int width = Width;
  static constexpr int threads = Threads;
  static constexpr int m_tiles = MTiles;  ///< of 16 rows, of one warp
  static constexpr int own = 16 * m_tiles * threads / 32;
  static constexpr int others = Others;
  static constexpr int part = 32;
  static constexpr int blocks = Blocks;  ///< that should fit on one multiprocessor
  static constexpr int own_bytes = own * 2 * width;
  static constexpr int other_bytes = others * 2 * width;
  static constexpr int shared_bytes = 2 * own_bytes + 4 * other_bytes;
};

/// Products of own rows (keys) with others (queries) become weights; lse is the queries'.
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

/// The gradients of such weights become those of scores.
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

/// dk and dv. Products are transposed: a warp owns whole rows of keys, so that the transposed
/// weights, and their gradients, are left operands of the next products where they are.
template <class T, class C>
__global__ void __launch_bounds__(C::threads, C::blocks)
    backward_keys_kernel(const __grid_constant__ SoftmaxBackwardCall<T> call) {
  ATTNBENCH_SHARED(unsigned char, shared, 128);
  const SoftmaxShape& shape = call.shape;
  const Band& band = shape.band;
  // The first keys, which the most queries see where the band ends with the diagonal, go first.
  const int blocks = (band.key_length + C::own - 1) / C::own;
  const Place mine = place(static_cast<int>(blockIdx.x), shape.batch * shape.kv_heads, blocks);
  const int b = mine.head / shape.kv_heads, kv = mine.head % shape.kv_heads;
  const int s0 = mine.block * C::own;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16 * C::m_tiles;
  const int key0 = s0 + warp_row;

  unsigned char* const values = shared + C::own_bytes;
  unsigned char* const queries = values + C::own_bytes;
  const HeadRows<T> k{call.arrays.k, b, kv, band.key_length, shape.head_dim};
  const HeadRows<T> v{call.arrays.v, b, kv, band.key_length, shape.value_dim};
  load_rows<C::own, C::width, C::threads>(shared, k, s0);
  load_rows<C::own, C::width, C::threads>(values, v, s0);

  const Range range =
      tiles(band.queries(s0, Band::lesser(s0 + C::own, band.key_length)), C::others);
  const int last_head = range.begin < range.end ? (kv + 1) * shape.group : 0;
  const auto load_queries = [&](int h, int tile, int stage) {
    const HeadRows<T> q{call.arrays.q, b, h, band.length, shape.head_dim};
    const HeadRows<T> d_out{call.gradients.d_out, b, h, band.length, shape.value_dim};
    unsigned char* const to = queries + stage * 2 * C::other_bytes;
    load_rows<C::others, C::width, C::threads>(to, q, tile * C::others);
    load_rows<C::others, C::width, C::threads>(to + C::other_bytes, d_out, tile * C::others);
  };
  int h = kv * shape.group;
  int tile = range.begin;
  if (h < last_head) load_queries(h, tile, 0);
  commit_copies();

  using Shared = SharedTile<C::width>;
  const unsigned k_lane = Shared::lane_straight(shared_address(shared), warp_row);
  const unsigned v_lane = Shared::lane_straight(shared_address(values), warp_row);
  float dk[C::m_tiles][C::width / 8][4], dv[C::m_tiles][C::width / 8][4];
  clear(dk);
  clear(dv);

  for (int stage = 0; h < last_head; stage ^= 1) {
    wait_copies<0>();
    __syncthreads();
    const int here = tile * C::others;
    const std::int64_t row0 = std::int64_t{b * shape.heads + h} * call.padded_length;
    if (++tile == range.end) {
      tile = range.begin;
      ++h;
    }
    if (h < last_head) {
      load_queries(h, tile, stage ^ 1);
      commit_copies();
    }
    const std::uint32_t q_tile = shared_address(queries + stage * 2 * C::other_bytes);
    const std::uint32_t d_out_tile = q_tile + C::other_bytes;
#pragma unroll 1
    for (int part = 0; part < C::others; part += C::part) {
      const int t0 = here + part, t1 = Band::lesser(t0 + C::part, band.length);
      if (t1 <= t0 || band.none(t0, t1, key0, key0 + 16 * C::m_tiles)) continue;
      const std::int64_t row = row0 + t0 + lane % 4 * 2;
      float weights[C::m_tiles][C::part / 8][4];
      clear(weights);
      multiply_rows<T, C::width>(weights, k_lane, Shared::lane_crossed(q_tile, part));
      weigh(weights, call.lse + row, shape.scale);
      if (call.arrays.key_mask != nullptr || !band.full(t0, t1, key0, key0 + 16 * C::m_tiles)) {
        hide<true>(weights, band, key_mask(call.arrays, b), key0 + lane / 4, t0 + lane % 4 * 2, 0);
      }
      multiply_weights<T, C::width>(dv, weights, Shared::lane_straight(d_out_tile, part));
      float gradients[C::m_tiles][C::part / 8][4];
      clear(gradients);
      multiply_rows<T, C::width>(gradients, v_lane, Shared::lane_crossed(d_out_tile, part));
      differentiate(gradients, weights, call.delta + row);
      multiply_weights<T, C::width>(dk, gradients, Shared::lane_straight(q_tile, part));
    }
  }

  wait_copies<0>();
  __syncthreads();
  const auto store = [&](const Rows<T>& to, int width, const auto& sum, float by,
                         unsigned char* own) {
    float factor[C::m_tiles][2];
#pragma unroll
    for (int m = 0; m < C::m_tiles; ++m) factor[m][0] = factor[m][1] = by;
    store_rows<T, C::width>(to, b, kv, key0, band.key_length, width, sum, factor,
                            own + warp_row * Shared::row_bytes);
  };
  store(call.gradients.dk, shape.head_dim, dk, shape.factor, shared);
  store(call.gradients.dv, shape.value_dim, dv, 1, values);
}

/// dq: once more the weights and their gradients, for a tile of queries over the keys they see.
template <class T, class C>
__global__ void __launch_bounds__(C::threads, C::blocks)
    backward_queries_kernel(const __grid_constant__ SoftmaxBackwardCall<T> call) {
  ATTNBENCH_SHARED(unsigned char, shared, 128);
  const SoftmaxShape& shape = call.shape;
  const Band& band = shape.band;
  const int blocks = (band.length + C::own - 1) / C::own;
  const Place here = place(static_cast<int>(blockIdx.x), shape.batch * shape.heads, blocks);
  const int b = here.head / shape.heads, h = here.head % shape.heads;
  const int t0 = (blocks - 1 - here.block) * C::own;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp_row = static_cast<int>(threadIdx.x) / 32 * 16 * C::m_tiles;
  const int query0 = t0 + warp_row;
  const int query1 = Band::lesser(query0 + 16 * C::m_tiles, band.length);

  const HeadRows<T> q{call.arrays.q, b, h, band.length, shape.head_dim};
  const HeadRows<T> d_out{call.gradients.d_out, b, h, band.length, shape.value_dim};
  const HeadRows<T> k{call.arrays.k, b, h / shape.group, band.key_length, shape.head_dim};
  const HeadRows<T> v{call.arrays.v, b, h / shape.group, band.key_length, shape.value_dim};
  unsigned char* const d_outs = shared + C::own_bytes;
  unsigned char* const keys = d_outs + C::own_bytes;
  const Range range = tiles(band.keys(t0, Band::lesser(t0 + C::own, band.length)), C::others);
  const auto load_keys = [&](int tile, int stage) {
    unsigned char* const to = keys + stage * 2 * C::other_bytes;
    load_rows<C::others, C::width, C::threads>(to, k, tile * C::others);
    load_rows<C::others, C::width, C::threads>(to + C::other_bytes, v, tile * C::others);
  };
  load_rows<C::own, C::width, C::threads>(shared, q, t0);
  load_rows<C::own, C::width, C::threads>(d_outs, d_out, t0);
  if (range.begin < range.end) load_keys(range.begin, 0);
  commit_copies();

  float lse[C::m_tiles][2], delta[C::m_tiles][2];
#pragma unroll
  for (int m = 0; m < C::m_tiles; ++m) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::int64_t row =
          std::int64_t{here.head} * call.padded_length + query0 + 16 * m + 8 * half + lane / 4;
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
    const unsigned k_tile = shared_address(keys + stage * 2 * C::other_bytes);
#pragma unroll 1
    for (int part = 0; part < C::others; part += C::part) {
      const int s0 = tile * C::others + part;
      if (band.none(query0, query1, s0, s0 + C::part)) continue;
      float scores[C::m_tiles][C::part / 8][4], gradients[C::m_tiles][C::part / 8][4];
      clear(scores);
      clear(gradients);
      multiply_rows<T, C::width>(scores, q_lane, Shared::lane_crossed(k_tile, part));
      multiply_rows<T, C::width>(gradients, d_out_lane,
                                 Shared::lane_crossed(k_tile + C::other_bytes, part));
#pragma unroll
      for (int m = 0; m < C::m_tiles; ++m) {
#pragma unroll
        for (int n = 0; n < C::part / 8; ++n) {
#pragma unroll
          for (int e = 0; e < 4; ++e) {
            const float weight = exp2_fast(fmaf(scores[m][n][e], shape.scale, -lse[m][e / 2]));
            scores[m][n][e] = weight * (gradients[m][n][e] - delta[m][e / 2]);
          }
        }
      }
      if (call.arrays.key_mask != nullptr || !band.full(query0, query1, s0, s0 + C::part)) {
        hide<false>(scores, band, key_mask(call.arrays, b), query0 + lane / 4, s0 + lane % 4 * 2,
                    0);
      }
      multiply_weights<T, C::width>(dq, scores, Shared::lane_straight(k_tile, part));
    }
  }

  wait_copies<0>();
  __syncthreads();
  float factor[C::m_tiles][2];
#pragma unroll
  for (int m = 0; m < C::m_tiles; ++m) factor[m][0] = factor[m][1] = shape.factor;
  store_rows<T, C::width>(call.gradients.dq, b, h, query0, band.length, shape.head_dim, dq, factor,
                          shared + warp_row * Shared::row_bytes);
}

/// The tiles of the pass over keys, and of that over queries.
template <class ForKeys, class ForQueries, class T>
bool backward(const SoftmaxBackwardCall<T>& call, Stream stream) {
  static_assert(Band::greater(ForKeys::shared_bytes, ForQueries::shared_bytes) <= least_shared);
  const SoftmaxShape& shape = call.shape;
  const auto blocks = [&](int heads, int length, int own) {
    return dim3(
        static_cast<unsigned>(std::int64_t{shape.batch} * heads * ((length + own - 1) / own)));
  };
  if (shape.band.key_length > 0) {
    launch(backward_keys_kernel<T, ForKeys>,
           blocks(shape.kv_heads, shape.band.key_length, ForKeys::own), dim3(ForKeys::threads),
           ForKeys::shared_bytes, stream, call);
  }
  if (shape.band.length > 0) {
    launch(backward_queries_kernel<T, ForQueries>,
           blocks(shape.heads, shape.band.length, ForQueries::own), dim3(ForQueries::threads),
           ForQueries::shared_bytes, stream, call);
  }
  return true;
}

}  // namespace

template <class T>
bool softmax_backward_mma(const SoftmaxBackwardCall<T>& call, Stream stream) {
  const SoftmaxShape& shape = call.shape;
  const SoftmaxGradients<T>& g = call.gradients;
  if (!aligned(call.arrays, shape) || !aligned(g.d_out, shape.value_dim) ||
      !aligned(g.dq, shape.head_dim) || !aligned(g.dk, shape.head_dim) ||
      !aligned(g.dv, shape.value_dim)) {
    return false;
  }
  switch (tile_width(shape)) {
    case 64:
      return backward<BackwardTiles<64, 128, 2, 64, 2>, BackwardTiles<64, 128, 2, 64, 2>>(call,
                                                                                          stream);
    case 128:
      return backward<BackwardTiles<128, 256, 1, 32, 1>, BackwardTiles<128, 128, 1, 32, 2>>(call,
                                                                                            stream);
    default:
      return false;
  }
}

template bool softmax_backward_mma(const SoftmaxBackwardCall<BFloat16>&, Stream);
template bool softmax_backward_mma(const SoftmaxBackwardCall<Half>&, Stream);

}  // namespace attnbench::kernels::cuda
