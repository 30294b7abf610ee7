// Puts the parts of split keys together: each weighs as much as its sum of exponentials.
#include <limits>

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/numbers.cuh"
#include "attention/kernels/cuda/softmax/call.hpp"

namespace attnbench::kernels::cuda {
namespace {

constexpr int warps = 8;
constexpr int most_columns = 256 / 32;  // of one lane

template <class T>
struct Call {
  SoftmaxArguments<T> arrays;
  SoftmaxShape shape;
  SoftmaxPartial partial;
  int parts;
};

/// One block a query; its warps take every eighth part.
template <class T>
__global__ void __launch_bounds__(32 * warps) combine_kernel(const __grid_constant__ Call<T> call) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  __shared__ float outs[warps][256];
  __shared__ float sums[warps];
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  const int width = call.shape.value_dim;
  const std::int64_t index = blockIdx.x;
  const std::int64_t rows = gridDim.x;
  float greatest = -infinity;
  for (int part = lane; part < call.parts; part += 32) {
    greatest = fmaxf(greatest, call.partial.lse[part * rows + index]);
  }
  for (int step = 16; step > 0; step /= 2) {
    greatest = fmaxf(greatest, __shfl_xor_sync(~0u, greatest, step));
  }
  const float base = greatest == -infinity ? 0 : greatest;
  float out[most_columns] = {};
  float sum = 0;
#pragma unroll 4
  for (int part = warp; part < call.parts; part += warps) {
    const float weight = exp2f(call.partial.lse[part * rows + index] - base);
    const float* from = call.partial.out + (part * rows + index) * width;
    sum += weight;
#pragma unroll
    for (int j = 0; j < most_columns; ++j) {
      if (lane + 32 * j < width) out[j] += weight * from[lane + 32 * j];
    }
  }
#pragma unroll
  for (int j = 0; j < most_columns; ++j) outs[warp][lane + 32 * j] = out[j];
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  float total = 0;
  for (int w = 0; w < warps; ++w) total += sums[w];
  const int t = static_cast<int>(index % call.shape.band.length);
  const std::int64_t head = index / call.shape.band.length;
  if (static_cast<int>(threadIdx.x) < width) {
    float value = 0;
    for (int w = 0; w < warps; ++w) value += outs[w][threadIdx.x];
    from_float(
        total == 0 ? 0 : value / total,
        call.arrays.out.at(head / call.shape.heads, head % call.shape.heads, t)[threadIdx.x]);
  }
  if (threadIdx.x == 0 && call.arrays.lse != nullptr) {
    call.arrays.lse[index] = total == 0 ? infinity : (base + log2f(total)) * 0.69314718056f;
  }
}

}  // namespace

template <class T>
void softmax_combine(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                     const SoftmaxSplit& split, const SoftmaxPartial& partial, Stream stream) {
  const Call<T> call{arguments, SoftmaxShape(sizes), partial, split.parts};
  launch(combine_kernel<T>, dim3(static_cast<unsigned>(sizes.batch * sizes.heads * sizes.length)),
         dim3(32 * warps), 0, stream, call);
}

#define ATTNBENCH_INSTANTIATE(T)                                                 \
  template void softmax_combine(const SoftmaxSizes&, const SoftmaxArguments<T>&, \
                                const SoftmaxSplit&, const SoftmaxPartial&, Stream);
ATTNBENCH_FOR_CUDA_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels::cuda
