#include "attention/kernels/cuda/softmax/bias.hpp"

#include "attention/kernels/cuda/launch.cuh"

namespace attnbench::kernels::cuda {
namespace {

constexpr int columns = 32, groups = 16;

struct Call {
  SoftmaxBias bias;
  const float* parts;
  std::int64_t count;  ///< parts
  float* to;
  int distances;
};

/// A block takes 32 distances, each of its warps every sixteenth part.
__global__ void __launch_bounds__(columns* groups) bias_kernel(const Call call) {
  __shared__ float sums[groups][columns];
  const int lane = threadIdx.x % columns, group = threadIdx.x / columns;
  const int i = static_cast<int>(blockIdx.x) * columns + lane;
  const int place = call.bias.place(call.bias.first + i);
  const bool seen = i < call.distances && place >= 0 && place < call.bias.span;
  float sum = 0;
  if (seen) {
#pragma unroll 8
    for (std::int64_t k = group; k < call.count; k += groups) {
      sum += call.parts[k * call.bias.span + place];
    }
  }
  sums[group][lane] = sum;
  __syncthreads();
  if (group != 0 || i >= call.distances) return;
  for (int g = 1; g < groups; ++g) sum += sums[g][lane];
  call.to[i] = sum;
}

}  // namespace

void softmax_bias_gradient(const SoftmaxSizes& sizes, const SoftmaxBias& bias, const float* parts,
                           float* to, Stream stream) {
  const auto distances = static_cast<int>(2 * sizes.bias_reach + 1);
  launch(bias_kernel, dim3(static_cast<unsigned>((distances + columns - 1) / columns)),
         dim3(columns * groups), 0, stream,
         Call{bias, parts, softmax_bias_parts(sizes), to, distances});
}

}  // namespace attnbench::kernels::cuda
