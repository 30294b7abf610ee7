#include "attention/kernels/cuda/pool/launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t pool_forward_bytes<BFloat16>(const WholePoolSizes&);
template void pool_forward<BFloat16>(const WholePoolSizes&, const WholePoolArguments<BFloat16>&,
                                     Stream, void*, std::size_t);
template void pool_averages<BFloat16>(const WholePoolSizes&, const WholePoolArguments<BFloat16>&,
                                      const ExactPool&, Stream);

}  // namespace attnbench::kernels::cuda
