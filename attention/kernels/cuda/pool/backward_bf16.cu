#include "attention/kernels/cuda/pool/slope_launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t pool_backward_bytes<BFloat16>(const WholePoolSizes&);
template void pool_backward<BFloat16>(const WholePoolSizes&, const WholePoolArguments<BFloat16>&,
                                      const PrefixPoolGradients<BFloat16>&, Stream, void*,
                                      std::size_t);

}  // namespace attnbench::kernels::cuda
