// Few queries against many keys, as when one token is decoded: 16 queries (of all heads that share
// a key head) to a block, which passes over a part of their keys. Its warps share nothing but the
// queries: each copies every fourth tile of 16 keys into memory of its own, several tiles ahead, so
// that no barrier stands between the memory and the products. Their results meet at the end.
#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/numbers.cuh"
#include "attention/kernels/cuda/softmax/call.hpp"
#include "attention/kernels/cuda/softmax/sm80.cuh"
#include "attention/kernels/cuda/softmax/weights.cuh"

namespace attnbench::kernels::cuda {
namespace {

constexpr int warps = SplitTiles::warps;
constexpr int keys = SplitTiles::keys;
constexpr int rows = keys;

template <class T>
struct Call {
  SoftmaxArguments<T> arrays;
  SoftmaxShape shape;
  SoftmaxSplit split;
  SoftmaxPartial partial;
};

template <int Width_>
struct Config {
  static constexpr int width = Width_;
  static constexpr int stages = SplitTiles::stages(width);
  static constexpr int tile_bytes = SplitTiles::tile_bytes(width);
  static constexpr int warp_bytes = SplitTiles::warp_bytes(width);
  static constexpr int shared_bytes = SplitTiles::shared_bytes(width);
  static_assert(warps * rows * 4 * width <= warps * warp_bytes);
};

/// The queries of one block: a stretch of the list of all queries of a group.
struct Queries {
  int first, count, length;
  __device__ int head(int row) const { return (first + row) / length; }
  __device__ int token(int row) const { return (first + row) % length; }
  /// Tokens that hold all of the block's.
  __device__ Range tokens() const {
    if (head(0) != head(count - 1)) return {0, length};
    return {token(0), token(count - 1) + 1};
  }
};

template <class T, int Width>
__device__ void load_queries(unsigned char* tile, const Call<T>& call, const Queries& queries,
                             int b, int first_head) {
  for (int i = threadIdx.x; i < rows * Width; i += 32 * warps) {
    const int row = i / Width;
    const int d = i % Width;
    std::uint16_t bits = 0;
    if (row < queries.count && d < call.shape.head_dim) {
      bits = call.arrays.q.at(b, first_head + queries.head(row), queries.token(row))[d].bits;
    }
    *reinterpret_cast<std::uint16_t*>(tile + SharedTile<Width>::at(row, d / 8) + d % 8 * 2) = bits;
  }
}

/// What the warps hold of 16 queries, put together: value `d` of query `row`, and the query's sum.
template <int Width>
struct Merged {
  const float* out;   // [warps, rows, Width], not divided by the sums
  const float* base;  // [warps, rows]
  const float* sum;

  __device__ float greatest(int row) const {
    float x = base[row];
    for (int w = 1; w < warps; ++w) x = fmaxf(x, base[w * rows + row]);
    return x == -infinity ? 0 : x;
  }
  __device__ float total(int row) const {
    float x = 0;
    for (int w = 0; w < warps; ++w)
      x += sum[w * rows + row] * exp2f(base[w * rows + row] - greatest(row));
    return x;
  }
  __device__ float value(int row, int d) const {
    float x = 0;
    for (int w = 0; w < warps; ++w) {
      x += out[(w * rows + row) * Width + d] * exp2f(base[w * rows + row] - greatest(row));
    }
    const float all = total(row);
    return all == 0 ? 0 : x / all;
  }
};

template <class T, int Width>
__device__ void store(const Call<T>& call, const Queries& queries, int b, int first_head, int part,
                      const Merged<Width>& merged) {
  const SoftmaxShape& shape = call.shape;
  const std::int64_t all_rows = std::int64_t{shape.batch} * shape.heads * shape.band.length;
  for (int i = threadIdx.x; i < queries.count * Width; i += 32 * warps) {
    const int row = i / Width;
    const int d = i % Width;
    const int h = first_head + queries.head(row);
    const int t = queries.token(row);
    const std::int64_t index = (std::int64_t{b} * shape.heads + h) * shape.band.length + t;
    if (d < shape.value_dim) {
      const float value = merged.value(row, d);
      if (call.split.parts > 1) {
        call.partial.out[(part * all_rows + index) * shape.value_dim + d] = value;
      } else {
        from_float(value, call.arrays.out.at(b, h, t)[d]);
      }
    }
    if (d != 0) continue;
    const float total = merged.total(row);
    const float lse = merged.greatest(row) + log2f(total);
    if (call.split.parts > 1) {
      call.partial.lse[part * all_rows + index] = total == 0 ? -infinity : lse;
    } else if (call.arrays.lse != nullptr) {
      call.arrays.lse[index] = total == 0 ? infinity : lse * 0.69314718056f;
    }
  }
}

template <class T, class C, bool Aligned>
__global__ void __launch_bounds__(32 * warps, 1)
    softmax_split_kernel(const __grid_constant__ Call<T> call) {
  ATTNBENCH_SHARED(unsigned char, shared, 128);
  __shared__ float bases[warps * rows], sums[warps * rows];
  using Shared = SharedTile<C::width>;
  const SoftmaxShape& shape = call.shape;
  const Band& band = shape.band;
  const int part = static_cast<int>(blockIdx.x) % call.split.parts;
  const int unit = static_cast<int>(blockIdx.x) / call.split.parts;
  const int row_blocks = (shape.group * band.length + rows - 1) / rows;
  const int first = unit % row_blocks * rows;
  const Queries queries{first, Band::lesser(rows, shape.group * band.length - first), band.length};
  const int b = unit / row_blocks / shape.kv_heads;
  const int kv = unit / row_blocks % shape.kv_heads;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const HeadRows<T> k{call.arrays.k, b, kv, band.key_length, shape.head_dim};
  const HeadRows<T> v{call.arrays.v, b, kv, band.key_length, shape.value_dim};

  const Range tokens = queries.tokens();
  const Range all = tiles(band.keys(tokens.begin, tokens.end), keys);
  const auto share = [&](int i) {
    return all.begin + static_cast<int>(std::int64_t{all.end - all.begin} * i / call.split.parts);
  };
  const Range range{share(part) + warp, share(part + 1)};
  unsigned char* const own = shared + C::tile_bytes + warp * C::warp_bytes;
  const auto load = [&](int tile, int stage) {
    if (tile < range.end) {
      unsigned char* const to = own + stage * 2 * C::tile_bytes;
      load_rows<keys, C::width, 32, Aligned>(to, k, tile * keys, lane);
      load_rows<keys, C::width, 32, Aligned>(to + C::tile_bytes, v, tile * keys, lane);
    }
    commit_copies();
  };
#pragma unroll
  for (int s = 0; s < C::stages - 1; ++s) load(range.begin + s * warps, s);

  load_queries<T, C::width>(shared, call, queries, b, kv * shape.group);
  __syncthreads();
  if (shape.negative) {
    negate_rows<rows, C::width>(shared, threadIdx.x, 32 * warps);
    __syncthreads();
  }
  const std::uint32_t q_lane = Shared::lane_straight(shared_address(shared), 0);
  float out[1][C::width / 8][4];
  float base[1][2] = {{-infinity, -infinity}}, sum[1][2] = {{0, 0}};
  clear(out);
  const int row = lane / 4;
  const int token0 = queries.token(row), token1 = queries.token(row + 8);
  int stage = 0;
  for (int tile = range.begin; tile < range.end; tile += warps) {
    wait_copies<C::stages - 2>();
    __syncwarp();
    load(tile + (C::stages - 1) * warps, (stage + C::stages - 1) % C::stages);
    const unsigned here = shared_address(own + stage * 2 * C::tile_bytes);
    stage = (stage + 1) % C::stages;
    float scores[1][2][4];
    clear(scores);
    multiply_rows<T, C::width>(scores, q_lane, Shared::lane_crossed(here, 0));
    const int s0 = tile * keys;
    if (call.arrays.key_mask != nullptr || !band.full(tokens.begin, tokens.end, s0, s0 + keys)) {
      const std::uint8_t* mask = key_mask(call.arrays, b);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int key = s0 + 8 * n + lane % 4 * 2 + e;
          const bool real = key < band.key_length && (mask == nullptr || mask[key] != 0);
          if (!real || !band.sees(token0, key)) scores[0][n][e] = -infinity;
          if (!real || !band.sees(token1, key)) scores[0][n][2 + e] = -infinity;
        }
      }
    }
    weigh(scores, base, sum, out, shape.scale);
    multiply_weights<T, C::width>(out, scores, Shared::lane_straight(here + C::tile_bytes, 0));
  }

  wait_copies<0>();
  __syncthreads();
  float* const outs = reinterpret_cast<float*>(shared + C::tile_bytes);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int at = warp * rows + row + 8 * half;
    const float total = row_sum(sum[0][half]);
    if (lane % 4 == 0) {
      bases[at] = base[0][half];
      sums[at] = total;
    }
#pragma unroll
    for (int n = 0; n < C::width / 8; ++n) {
      *reinterpret_cast<float2*>(outs + at * C::width + 8 * n + lane % 4 * 2) =
          make_float2(out[0][n][2 * half], out[0][n][2 * half + 1]);
    }
  }
  __syncthreads();
  store<T, C::width>(call, queries, b, kv * shape.group, part, {outs, bases, sums});
}

template <class T, class C>
void forward(const SoftmaxSizes& sizes, const Call<T>& call, Stream stream) {
  require_shared(C::shared_bytes);
  launch(aligned(sizes, call.arrays) ? softmax_split_kernel<T, C, true>
                                     : softmax_split_kernel<T, C, false>,
         dim3(static_cast<unsigned>(call.split.blocks(sizes))), dim3(32 * warps), C::shared_bytes,
         stream, call);
}

}  // namespace

template <class T>
void softmax_forward_split_sm80(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                                const SoftmaxSplit& split, const SoftmaxPartial& partial,
                                Stream stream) {
  const Call<T> call{arguments, SoftmaxShape(sizes), split, partial};
  switch (tile_width(sizes)) {
    case 64:
      return forward<T, Config<64>>(sizes, call, stream);
    case 128:
      return forward<T, Config<128>>(sizes, call, stream);
    default:
      return forward<T, Config<256>>(sizes, call, stream);
  }
}

template void softmax_forward_split_sm80(const SoftmaxSizes&, const SoftmaxArguments<BFloat16>&,
                                         const SoftmaxSplit&, const SoftmaxPartial&, Stream);
template void softmax_forward_split_sm80(const SoftmaxSizes&, const SoftmaxArguments<Half>&,
                                         const SoftmaxSplit&, const SoftmaxPartial&, Stream);

}  // namespace attnbench::kernels::cuda
