// The kernel of softmax_forward_sm80.cuh with biases by distance.
#include "attention/kernels/cuda/softmax/forward_sm80.cuh"

namespace attnbench::kernels::cuda {

template <class T>
void softmax_biased_sm80(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                         Stream stream) {
  if (tile_width(sizes) == 64) {
    launch_forward_sm80<Forward64, true>(sizes, arguments, stream);
  } else {
    launch_forward_sm80<Forward128, true>(sizes, arguments, stream);
  }
}

template void softmax_biased_sm80(const SoftmaxSizes&, const SoftmaxArguments<BFloat16>&, Stream);
template void softmax_biased_sm80(const SoftmaxSizes&, const SoftmaxArguments<Half>&, Stream);

}  // namespace attnbench::kernels::cuda
