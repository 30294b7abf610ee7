#include "attention/kernels/cuda/softmax/forward_sm80.cuh"

namespace attnbench::kernels::cuda {

template <class T>
void softmax_forward_sm80(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                          Stream stream) {
  switch (tile_width(sizes)) {
    case 64:
      return launch_forward_sm80<Forward64, false>(sizes, arguments, stream);
    case 128:
      return launch_forward_sm80<Forward128, false>(sizes, arguments, stream);
    default:
      return launch_forward_sm80<ForwardConfig<256, 8, 1, 32, 32, 1>, false>(sizes, arguments,
                                                                             stream);
  }
}

template void softmax_forward_sm80(const SoftmaxSizes&, const SoftmaxArguments<BFloat16>&, Stream);
template void softmax_forward_sm80(const SoftmaxSizes&, const SoftmaxArguments<Half>&, Stream);

}  // namespace attnbench::kernels::cuda
