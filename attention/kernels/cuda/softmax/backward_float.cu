// The gradients of the softmax in exact float arithmetic, on the CUDA cores. One kernel for both
// passes: a block holds a tile of its own rows, keys or queries, and passes over tiles of the
// others. The pass of the keys writes dk and dv, that of the queries dq. Nothing is added in
// memory.
#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/softmax/bias.hpp"
#include "attention/kernels/cuda/softmax/call.hpp"
#include "attention/kernels/cuda/softmax/float.cuh"

namespace attnbench::kernels::cuda {
namespace {

constexpr int rows = softmax_bias_rows;  // of every tile
constexpr int m = rows / 16;

struct Call : SoftmaxBackwardCall<float> {
  SoftmaxBias bias;
  float* bias_parts = nullptr;  ///< [blocks of the queries' pass, bias.span]
};

template <int Width>
struct Shared {
  float own_score[rows * float_stride<Width>];    // k or q
  float own_value[rows * float_stride<Width>];    // v or d_out
  float other_score[rows * float_stride<Width>];  // q or k
  float other_value[rows * float_stride<Width>];  // d_out or v
  float weights[rows * (rows + 1)];
  float gradients[rows * (rows + 1)];
};

/// Weights and gradients of the scores of one pair of tiles, own rows by other rows, to shared
/// memory.
template <int Width, bool Keys>
__device__ void differentiate(Shared<Width>& shared, const Call& call, const std::uint8_t* mask,
                              std::int64_t head, int own0, int other0) {
  const Band& band = call.shape.band;
  const float scale = call.shape.negative ? -call.shape.scale : call.shape.scale;
  float scores[m][m] = {}, d_weights[m][m] = {};
  multiply_float_rows<Width>(scores, shared.own_score, shared.other_score);
  multiply_float_rows<Width>(d_weights, shared.own_value, shared.other_value);
#pragma unroll
  for (int i = 0; i < m; ++i) {
#pragma unroll
    for (int j = 0; j < m; ++j) {
      const int own = static_cast<int>(threadIdx.x) / 16 * m + i;
      const int other = 16 * j + static_cast<int>(threadIdx.x) % 16;
      const int t = Keys ? other0 + other : own0 + own;
      const int s = Keys ? own0 + own : other0 + other;
      const bool seen = t < band.length && band.sees(t, s) && (mask == nullptr || mask[s] != 0);
      float weight = 0, gradient = 0;
      if (seen) {
        const std::int64_t row = head * call.padded_length + t;
        weight = exp2f(scores[i][j] * scale + call.bias.of(s - t) - call.lse[row]);
        gradient = weight * (d_weights[i][j] - call.delta[row]);
      }
      shared.weights[own * (rows + 1) + other] = weight;
      shared.gradients[own * (rows + 1) + other] = gradient;
    }
  }
}

/// Adds a pair of tiles to the block's part of the biases' gradient, a thread a distance: queries
/// from t0 on, keys from s0 on.
template <int Width>
__device__ void add_distances(const Shared<Width>& shared, const Call& call, float* part, int t0,
                              int s0) {
  const int apart = static_cast<int>(threadIdx.x) - (rows - 1);
  const int place = call.bias.place(s0 - t0 + apart);
  if (apart >= rows || place < 0 || place >= call.bias.span) return;
  float sum = 0;
  for (int t = max(0, -apart); t < min(rows, rows - apart); ++t) {
    sum += shared.gradients[t * (rows + 1) + t + apart];
  }
  part[place] += sum;
}

template <int Columns>
__device__ void store(const Rows<float>& to, int b, int h, int row0, int count, int width,
                      const float (&sum)[m][Columns], float factor) {
#pragma unroll
  for (int i = 0; i < m; ++i) {
    const int row = row0 + static_cast<int>(threadIdx.x) / 16 * m + i;
    if (row >= count) continue;
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      if (float_column(c) < width) to.at(b, h, row)[float_column(c)] = sum[i][c] * factor;
    }
  }
}

template <int Width, bool Keys>
__global__ void __launch_bounds__(float_threads, 1)
    backward_kernel(const __grid_constant__ Call call) {
  ATTNBENCH_SHARED(unsigned char, raw, 128);
  auto& shared = *reinterpret_cast<Shared<Width>*>(raw);
  const SoftmaxShape& shape = call.shape;
  const Band& band = shape.band;
  const SoftmaxArguments<float>& in = call.arrays;
  const int heads = Keys ? shape.kv_heads : shape.heads;
  const int b = static_cast<int>(blockIdx.x) % (shape.batch * heads) / heads;
  const int own_head = static_cast<int>(blockIdx.x) % heads;
  const int own0 = static_cast<int>(blockIdx.x) / (shape.batch * heads) * rows;
  const int own_count = Keys ? band.key_length : band.length;
  const int other_count = Keys ? band.length : band.key_length;
  const std::uint8_t* mask = in.key_mask == nullptr ? nullptr : in.key_mask + b * in.mask_stride;
  load_floats<rows, Width>(shared.own_score, Keys ? in.k : in.q, b, own_head, own0, own_count,
                           shape.head_dim);
  load_floats<rows, Width>(shared.own_value, Keys ? in.v : call.gradients.d_out, b, own_head, own0,
                           own_count, shape.value_dim);
  const int own1 = Band::lesser(own0 + rows, own_count);
  const Range range = tiles(Keys ? band.queries(own0, own1) : band.keys(own0, own1), rows);
  float* const part = Keys || call.bias_parts == nullptr
                          ? nullptr
                          : call.bias_parts + std::int64_t{blockIdx.x} * call.bias.span;
  for (int i = threadIdx.x; part != nullptr && i < call.bias.span; i += float_threads) part[i] = 0;
  float d_score[m][Width / 16] = {}, d_value[m][Width / 16] = {};
  const int first = Keys ? own_head * shape.group : own_head / shape.group;
  for (int other_head = first; other_head < first + (Keys ? shape.group : 1); ++other_head) {
    for (int tile = range.begin; tile < range.end; ++tile) {
      const int other0 = tile * rows;
      __syncthreads();
      load_floats<rows, Width>(shared.other_score, Keys ? in.q : in.k, b, other_head, other0,
                               other_count, shape.head_dim);
      load_floats<rows, Width>(shared.other_value, Keys ? call.gradients.d_out : in.v, b,
                               other_head, other0, other_count, shape.value_dim);
      __syncthreads();
      const std::int64_t head = std::int64_t{b} * shape.heads + (Keys ? other_head : own_head);
      differentiate<Width, Keys>(shared, call, mask, head, own0, other0);
      __syncwarp();  // a row's weights are written and read by one warp
      multiply_float_weights<Width, rows, rows + 1>(d_score, shared.gradients, shared.other_score);
      if constexpr (Keys) {
        multiply_float_weights<Width, rows, rows + 1>(d_value, shared.weights, shared.other_value);
      } else if (part != nullptr) {
        __syncthreads();
        add_distances(shared, call, part, own0, other0);
      }
    }
  }
  store(Keys ? call.gradients.dk : call.gradients.dq, b, own_head, own0, own_count, shape.head_dim,
        d_score, shape.true_scale);
  if constexpr (Keys) {
    store(call.gradients.dv, b, own_head, own0, own_count, shape.value_dim, d_value, 1);
  }
}

template <int Width>
void backward(const SoftmaxSizes& sizes, const Call& call, Stream stream) {
  require_shared(sizeof(Shared<Width>));
  const auto blocks = [](std::int64_t heads, std::int64_t count) {
    return dim3(static_cast<unsigned>(heads * ((count + rows - 1) / rows)));
  };
  if (sizes.key_length > 0) {
    launch(backward_kernel<Width, true>, blocks(sizes.batch * sizes.kv_heads, sizes.key_length),
           dim3(float_threads), sizeof(Shared<Width>), stream, call);
  }
  if (sizes.length > 0) {
    launch(backward_kernel<Width, false>, blocks(sizes.batch * sizes.heads, sizes.length),
           dim3(float_threads), sizeof(Shared<Width>), stream, call);
  }
}

void choose(const SoftmaxSizes& sizes, const Call& call, Stream stream) {
  switch (tile_width(sizes)) {
    case 64:
      return backward<64>(sizes, call, stream);
    case 128:
      return backward<128>(sizes, call, stream);
    default:
      return backward<256>(sizes, call, stream);
  }
}

}  // namespace

void softmax_backward_float(const SoftmaxSizes& sizes, const SoftmaxBackwardCall<float>& call,
                            Stream stream) {
  choose(sizes, {call, {}, nullptr}, stream);
}

void softmax_backward_biased(const SoftmaxSizes& sizes, const SoftmaxBackwardCall<float>& call,
                             float* parts, Stream stream) {
  const SoftmaxBias bias(sizes, call.arrays.bias);
  choose(sizes, {call, bias, parts}, stream);
  softmax_bias_gradient(sizes, bias, parts, call.gradients.d_bias, stream);
}

}  // namespace attnbench::kernels::cuda
