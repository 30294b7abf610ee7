// The softmax as it is defined, a warp a row: 32 scores at a time, one a lane, with the online
// softmax of Milakov and Gimelshein 2018. Computed in float for every type, on the CUDA cores; any
// width, any rows. The first rung of the ladder, and what the tensor-core kernels are not for.
#include <limits>

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/numbers.cuh"
#include "attention/kernels/cuda/softmax/shape.hpp"

namespace attnbench::kernels::cuda {
namespace {

constexpr int warps = 4;  // of a block
constexpr int widest = 256;
constexpr int columns = widest / 32;  // of a row, that one lane holds
constexpr float infinity = std::numeric_limits<float>::infinity();

/// Shared memory of one warp: its own row, twice where there are two products, and 32 weights.
struct Room {
  float score_row[widest];  // q, or k
  float value_row[widest];  // d_out, or v
  float weights[32];
  float gradients[32];
};

__device__ float warp_greatest(float x) {
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, step));
  return x;
}
__device__ float warp_sum(float x) {
  for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
  return x;
}

template <class T>
__device__ void load(float* to, const T* row, int width) {
  for (int d = threadIdx.x % 32; d < width; d += 32) to[d] = to_float(row[d]);
}

template <class T>
__device__ float dot(const float* own, const T* other, int width) {
  float sum = 0;
  for (int d = 0; d < width; ++d) sum = fmaf(own[d], to_float(other[d]), sum);
  return sum;
}

/// sum += weight * row; a lane holds every 32nd column.
template <class T>
__device__ void add_row(float (&sum)[columns], float weight, const T* row, int width) {
#pragma unroll
  for (int c = 0; c < columns; ++c) {
    const int d = threadIdx.x % 32 + 32 * c;
    if (d < width) sum[c] = fmaf(weight, to_float(row[d]), sum[c]);
  }
}

template <class T>
__device__ void store(T* row, const float (&sum)[columns], float factor, int width) {
#pragma unroll
  for (int c = 0; c < columns; ++c) {
    const int d = threadIdx.x % 32 + 32 * c;
    if (d < width) from_float(sum[c] * factor, row[d]);
  }
}

__device__ std::int64_t row_of_warp() {
  return std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
}

template <class T>
__global__ void __launch_bounds__(32 * warps)
    plain_forward(const __grid_constant__ SoftmaxCall<T> call) {
  ATTNBENCH_SHARED(Room, rooms, 16);
  Room& room = rooms[threadIdx.x / 32];
  const SoftmaxShape& shape = call.shape;
  const Band& band = shape.band;
  const std::int64_t row = row_of_warp();
  const int head = static_cast<int>(row / band.length), t = static_cast<int>(row % band.length);
  const int b = head / shape.heads, h = head % shape.heads, kv = h / shape.group;
  if (b >= shape.batch) return;
  const int lane = threadIdx.x % 32;
  const std::uint8_t* mask = key_mask(call.arrays, b);
  load(room.score_row, call.arrays.q.at(b, h, t), shape.head_dim);
  __syncwarp();

  float out[columns] = {}, greatest = -infinity, sum = 0;
  const Range keys = band.keys(t, t + 1);
  for (int s0 = keys.begin; s0 < keys.end; s0 += 32) {
    const int s = s0 + lane;
    const bool seen = s < keys.end && (mask == nullptr || mask[s] != 0);
    const float score =
        seen ? shape.scale * dot(room.score_row, call.arrays.k.at(b, kv, s), shape.head_dim)
             : -infinity;
    const float most = fmaxf(greatest, warp_greatest(score));
    const float base = most == -infinity ? 0 : most;
    const float moved = exp2f(greatest - base);
    greatest = most;
    const float weight = exp2f(score - base);
    sum = sum * moved + weight;
    for (float& x : out) x *= moved;
    room.weights[lane] = weight;
    __syncwarp();
    for (int j = 0; j < Band::lesser(32, keys.end - s0); ++j) {
      add_row(out, room.weights[j], call.arrays.v.at(b, kv, s0 + j), shape.value_dim);
    }
    __syncwarp();
  }
  sum = warp_sum(sum);
  store(call.arrays.out.at(b, h, t), out, sum == 0 ? 0 : 1 / sum, shape.value_dim);
  if (lane == 0 && call.arrays.lse != nullptr) {
    call.arrays.lse[row] = sum == 0 ? infinity : (greatest + log2f(sum)) * 0.69314718056f;
  }
}

/// delta = sum of d_out * out (Dao et al. 2022, algorithm 4, line 19), and the logarithm of the
/// sum; rows past the last query included.
template <class T>
__global__ void __launch_bounds__(32 * warps)
    plain_delta(const __grid_constant__ SoftmaxBackwardCall<T> call) {
  const SoftmaxShape& shape = call.shape;
  const std::int64_t row = row_of_warp();
  const int head = static_cast<int>(row / call.padded_length);
  const int t = static_cast<int>(row % call.padded_length);
  const int b = head / shape.heads, h = head % shape.heads, lane = threadIdx.x % 32;
  if (b >= shape.batch) return;
  float sum = 0, lse = infinity;
  if (t < shape.band.length) {
    const T* out = call.arrays.out.at(b, h, t);
    const T* d_out = call.gradients.d_out.at(b, h, t);
    for (int d = lane; d < shape.value_dim; d += 32) sum += to_float(out[d]) * to_float(d_out[d]);
    sum = warp_sum(sum);
    lse = call.arrays.lse[std::int64_t{head} * shape.band.length + t] * 1.44269504089f;
  }
  if (lane == 0) {
    call.lse[row] = lse;
    call.delta[row] = sum;
  }
}

/// A warp has a row of its own, a key or a query, and passes over the rows of the other kind that
/// go with it: a key's over the queries of all heads that share it. Nothing is added in memory.
/// Keys: writes dk and dv, else dq.
template <class T, bool Keys>
__global__ void __launch_bounds__(32 * warps, 1)
    plain_backward(const __grid_constant__ SoftmaxBackwardCall<T> call) {
  ATTNBENCH_SHARED(Room, rooms, 16);
  Room& room = rooms[threadIdx.x / 32];
  const SoftmaxShape& shape = call.shape;
  const Band& band = shape.band;
  const auto& in = call.arrays;
  const Rows<const T>& d_out = call.gradients.d_out;
  const int length = Keys ? band.key_length : band.length;
  const int heads = Keys ? shape.kv_heads : shape.heads;
  const std::int64_t row = row_of_warp();
  const int head = static_cast<int>(row / length), own = static_cast<int>(row % length);
  const int b = head / heads, own_head = head % heads;
  if (b >= shape.batch) return;
  const int lane = threadIdx.x % 32;
  const std::uint8_t* mask = key_mask(in, b);
  load(room.score_row, (Keys ? in.k : in.q).at(b, own_head, own), shape.head_dim);
  load(room.value_row, (Keys ? in.v : d_out).at(b, own_head, own), shape.value_dim);
  __syncwarp();

  float d_score[columns] = {}, d_value[columns] = {};
  const Range others = Keys ? band.queries(own, own + 1) : band.keys(own, own + 1);
  const int first = Keys ? own_head * shape.group : own_head / shape.group;
  for (int other_head = first; other_head < first + (Keys ? shape.group : 1); ++other_head) {
    const std::int64_t query0 =
        (std::int64_t{b} * shape.heads + (Keys ? other_head : own_head)) * call.padded_length;
    for (int o0 = others.begin; o0 < others.end; o0 += 32) {
      const int other = o0 + lane, s = Keys ? own : other;
      float weight = 0, gradient = 0;
      if (other < others.end && (mask == nullptr || mask[s] != 0)) {
        const std::int64_t query = query0 + (Keys ? other : own);
        const T* score_row = (Keys ? in.q : in.k).at(b, other_head, other);
        const T* value_row = (Keys ? d_out : in.v).at(b, other_head, other);
        const float score = dot(room.score_row, score_row, shape.head_dim);
        weight = exp2f(score * shape.scale - call.lse[query]);
        gradient = weight * (dot(room.value_row, value_row, shape.value_dim) - call.delta[query]);
      }
      room.weights[lane] = weight;
      room.gradients[lane] = gradient;
      __syncwarp();
      for (int j = 0; j < Band::lesser(32, others.end - o0); ++j) {
        add_row(d_score, room.gradients[j], (Keys ? in.q : in.k).at(b, other_head, o0 + j),
                shape.head_dim);
        if constexpr (Keys) {
          add_row(d_value, room.weights[j], d_out.at(b, other_head, o0 + j), shape.value_dim);
        }
      }
      __syncwarp();
    }
  }
  const Rows<T>& to = Keys ? call.gradients.dk : call.gradients.dq;
  store(to.at(b, own_head, own), d_score, shape.factor, shape.head_dim);
  if constexpr (Keys) {
    store(call.gradients.dv.at(b, own_head, own), d_value, 1, shape.value_dim);
  }
}

/// A warp for each of `rows`, which may be none.
template <class Call>
void launch_warps(void (*kernel)(const Call), std::int64_t rows, const Call& call, Stream stream) {
  if (rows == 0) return;
  launch(kernel, dim3(static_cast<unsigned>((rows + warps - 1) / warps)), dim3(32 * warps),
         warps * sizeof(Room), stream, call);
}

std::int64_t product(int a, int b, int c) { return std::int64_t{a} * b * c; }

}  // namespace

template <class T>
void softmax_forward_plain(const SoftmaxCall<T>& call, Stream stream) {
  const SoftmaxShape& shape = call.shape;
  launch_warps(plain_forward<T>, product(shape.batch, shape.heads, shape.band.length), call,
               stream);
}

template <class T>
void softmax_delta(const SoftmaxBackwardCall<T>& call, Stream stream) {
  const SoftmaxShape& shape = call.shape;
  launch_warps(plain_delta<T>, product(shape.batch, shape.heads, call.padded_length), call, stream);
}

template <class T>
void softmax_backward_plain(const SoftmaxBackwardCall<T>& call, Stream stream) {
  const SoftmaxShape& z = call.shape;
  launch_warps(plain_backward<T, true>, product(z.batch, z.kv_heads, z.band.key_length), call,
               stream);
  launch_warps(plain_backward<T, false>, product(z.batch, z.heads, z.band.length), call, stream);
}

#define ATTNBENCH_INSTANTIATE(T)                                      \
  template void softmax_forward_plain(const SoftmaxCall<T>&, Stream); \
  template void softmax_delta(const SoftmaxBackwardCall<T>&, Stream); \
  template void softmax_backward_plain(const SoftmaxBackwardCall<T>&, Stream);
ATTNBENCH_FOR_CUDA_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels::cuda
