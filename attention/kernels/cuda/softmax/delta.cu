// What the gradients of every weight need of its query: the logarithm of the sum, and
// delta = sum of d_out * out (Dao et al. 2022, algorithm 4, line 19).
#include <limits>

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/numbers.cuh"
#include "attention/kernels/cuda/softmax/call.hpp"

namespace attnbench::kernels::cuda {
namespace {

constexpr int warps = 4;

/// One warp a query, those past the last included.
template <class T>
__global__ void __launch_bounds__(32 * warps)
    delta_kernel(const __grid_constant__ SoftmaxBackwardCall<T> call) {
  const int lane = threadIdx.x % 32;
  const std::int64_t row = std::int64_t{blockIdx.x} * warps + threadIdx.x / 32;
  const std::int64_t head = row / call.padded_length;
  const int t = static_cast<int>(row % call.padded_length);
  if (head >= std::int64_t{call.shape.batch} * call.shape.heads) return;
  float sum = 0;
  float lse = std::numeric_limits<float>::infinity();
  if (t < call.shape.band.length) {
    const std::int64_t b = head / call.shape.heads;
    const std::int64_t h = head % call.shape.heads;
    const T* out = call.arrays.out.at(b, h, t);
    const T* d_out = call.gradients.d_out.at(b, h, t);
    for (int d = lane; d < call.shape.value_dim; d += 32)
      sum += to_float(out[d]) * to_float(d_out[d]);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    lse = call.arrays.lse[head * call.shape.band.length + t] * 1.44269504089f;
  }
  if (lane == 0) {
    call.lse[row] = lse;
    call.delta[row] = sum;
  }
}

}  // namespace

template <class T>
void softmax_delta(const SoftmaxBackwardCall<T>& call, Stream stream) {
  const std::int64_t rows = std::int64_t{call.shape.batch} * call.shape.heads * call.padded_length;
  launch(delta_kernel<T>, dim3(static_cast<unsigned>((rows + warps - 1) / warps)), dim3(32 * warps),
         0, stream, call);
}

template void softmax_delta(const SoftmaxBackwardCall<float>&, Stream);
template void softmax_delta(const SoftmaxBackwardCall<BFloat16>&, Stream);
template void softmax_delta(const SoftmaxBackwardCall<Half>&, Stream);

}  // namespace attnbench::kernels::cuda
