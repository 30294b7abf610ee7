// Tiled softmax in exact float arithmetic, on the CUDA cores: a block of 16 x 16 threads computes a
// tile of queries (of all heads that share a key head, as one list) against a part of the keys.
#include <limits>

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/softmax/bias.hpp"
#include "attention/kernels/cuda/softmax/call.hpp"
#include "attention/kernels/cuda/softmax/float.cuh"

namespace attnbench::kernels::cuda {
namespace {

constexpr int keys = 32;
constexpr float infinity = std::numeric_limits<float>::infinity();

struct Call {
  SoftmaxArguments<float> arrays;
  SoftmaxShape shape;
  SoftmaxSplit split;
  SoftmaxPartial partial;
  SoftmaxBias bias;
};

/// M is the number of queries of one thread; a tile has 16 M.
template <int Width, int M>
struct Shared {
  float q[16 * M * float_stride<Width>];
  float k[keys * float_stride<Width>];
  float v[keys * float_stride<Width>];
  float weights[16 * M * (keys + 1)];
};

/// Over the 16 threads that share a row.
__device__ float row_greatest(float x) {
  for (int step = 8; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  return x;
}
__device__ float row_sum(float x) {
  for (int step = 8; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

template <int Width, int M>
__global__ void __launch_bounds__(float_threads, 1)
    float_kernel(const __grid_constant__ Call call) {
  ATTNBENCH_SHARED(unsigned char, raw, 128);
  auto& shared = *reinterpret_cast<Shared<Width, M>*>(raw);
  constexpr int rows = 16 * M;
  const SoftmaxShape& shape = call.shape;
  const Band& band = shape.band;
  const int part = static_cast<int>(blockIdx.x) % call.split.parts;
  const int unit = static_cast<int>(blockIdx.x) / call.split.parts;
  const int list = shape.group * band.length;
  const int row_blocks = (list + rows - 1) / rows;
  const int first = unit % row_blocks * rows;
  const int count = Band::lesser(rows, list - first);
  const int b = unit / row_blocks / shape.kv_heads;
  const int kv = unit / row_blocks % shape.kv_heads;
  const std::uint8_t* mask = call.arrays.key_mask == nullptr
                                 ? nullptr
                                 : call.arrays.key_mask + b * call.arrays.mask_stride;
  const int x = static_cast<int>(threadIdx.x) % 16;
  const int y = static_cast<int>(threadIdx.x) / 16;
  const float scale = shape.negative ? -shape.scale : shape.scale;

  for (int i = threadIdx.x; i < rows * Width; i += float_threads) {
    const int row = i / Width;
    const int d = i % Width;
    const int at = first + row;
    const bool there = row < count && d < shape.head_dim;
    shared.q[row * float_stride<Width> + d] =
        there ? call.arrays.q.at(b, kv * shape.group + at / band.length, at % band.length)[d] : 0;
  }
  const int last = first + count - 1;
  const bool one_head = first / band.length == last / band.length;
  const Range all = tiles(
      one_head ? band.keys(first % band.length, last % band.length + 1) : band.keys(0, band.length),
      keys);
  const auto share = [&](int i) {
    return all.begin + static_cast<int>(std::int64_t{all.end - all.begin} * i / call.split.parts);
  };

  float out[M][Width / 16] = {};
  float greatest[M], sum[M];
  int token[M];
#pragma unroll
  for (int i = 0; i < M; ++i) {
    greatest[i] = -infinity;
    sum[i] = 0;
    token[i] = (first + y * M + i) % band.length;
  }
  for (int tile = share(part); tile < share(part + 1); ++tile) {
    const int s0 = tile * keys;
    __syncthreads();
    load_floats<keys, Width>(shared.k, call.arrays.k, b, kv, s0, band.key_length, shape.head_dim);
    load_floats<keys, Width>(shared.v, call.arrays.v, b, kv, s0, band.key_length, shape.value_dim);
    __syncthreads();
    float scores[M][keys / 16] = {};
    multiply_float_rows<Width>(scores, shared.q, shared.k);
#pragma unroll
    for (int i = 0; i < M; ++i) {
      float most = greatest[i];
#pragma unroll
      for (int j = 0; j < keys / 16; ++j) {
        const int key = s0 + 16 * j + x;
        const bool seen = band.sees(token[i], key) && (mask == nullptr || mask[key] != 0);
        scores[i][j] = seen ? scores[i][j] * scale : -infinity;
        if (seen) scores[i][j] += call.bias.of(key - token[i]);
        most = fmaxf(most, scores[i][j]);
      }
      most = row_greatest(most);
      const float base = most == -infinity ? 0 : most;
      const float factor = exp2f(greatest[i] - base);
      greatest[i] = most;
      sum[i] *= factor;
#pragma unroll
      for (int c = 0; c < Width / 16; ++c) out[i][c] *= factor;
#pragma unroll
      for (int j = 0; j < keys / 16; ++j) {
        const float weight = exp2f(scores[i][j] - base);
        sum[i] += weight;
        shared.weights[(y * M + i) * (keys + 1) + 16 * j + x] = weight;
      }
    }
    __syncwarp();  // a row's weights are written and read by one warp
    multiply_float_weights<Width, keys, keys + 1>(out, shared.weights, shared.v);
  }

  const std::int64_t all_rows = std::int64_t{shape.batch} * shape.heads * band.length;
#pragma unroll
  for (int i = 0; i < M; ++i) {
    const float total = row_sum(sum[i]);
    if (y * M + i >= count) continue;
    const int h = kv * shape.group + (first + y * M + i) / band.length;
    const std::int64_t index = (std::int64_t{b} * shape.heads + h) * band.length + token[i];
    const bool whole = call.split.parts == 1;
    float* to = whole ? call.arrays.out.at(b, h, token[i])
                      : call.partial.out + (part * all_rows + index) * shape.value_dim;
    const float factor = total == 0 ? 0 : 1 / total;
#pragma unroll
    for (int c = 0; c < Width / 16; ++c) {
      if (float_column(c) < shape.value_dim) to[float_column(c)] = out[i][c] * factor;
    }
    if (x != 0) continue;
    const float lse = greatest[i] + log2f(total);
    if (!whole) {
      call.partial.lse[part * all_rows + index] = total == 0 ? -infinity : lse;
    } else if (call.arrays.lse != nullptr) {
      call.arrays.lse[index] = total == 0 ? infinity : lse * 0.69314718056f;
    }
  }
}

template <int Width>
void forward(const SoftmaxSizes& sizes, const Call& call, Stream stream) {
  const dim3 grid(static_cast<unsigned>(call.split.blocks(sizes)));
  if (call.split.rows == 16) {
    require_shared(sizeof(Shared<Width, 1>));
    launch(float_kernel<Width, 1>, grid, dim3(float_threads), sizeof(Shared<Width, 1>), stream,
           call);
  } else {
    require_shared(sizeof(Shared<Width, 4>));
    launch(float_kernel<Width, 4>, grid, dim3(float_threads), sizeof(Shared<Width, 4>), stream,
           call);
  }
}

}  // namespace

void softmax_forward_float(const SoftmaxSizes& sizes, const SoftmaxArguments<float>& arguments,
                           const SoftmaxSplit& split, const SoftmaxPartial& partial,
                           Stream stream) {
  const Call call{arguments, SoftmaxShape(sizes), split, partial,
                  SoftmaxBias(sizes, arguments.bias)};
  switch (tile_width(sizes)) {
    case 64:
      return forward<64>(sizes, call, stream);
    case 128:
      return forward<128>(sizes, call, stream);
    default:
      return forward<256>(sizes, call, stream);
  }
}

}  // namespace attnbench::kernels::cuda
