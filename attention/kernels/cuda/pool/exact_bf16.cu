#include "attention/kernels/cuda/pool/exact.cuh"

namespace attnbench::kernels::cuda {

template std::size_t exact_pool_forward_bytes<BFloat16>(const WholePoolSizes&);
template void exact_pool_forward<BFloat16>(const WholePoolSizes&,
                                           const WholePoolArguments<BFloat16>&, Stream, void*,
                                           std::size_t);
template std::size_t exact_pool_backward_bytes<BFloat16>(const WholePoolSizes&);
template void exact_pool_backward<BFloat16>(const WholePoolSizes&,
                                            const WholePoolArguments<BFloat16>&,
                                            const PrefixPoolGradients<BFloat16>&, Stream, void*,
                                            std::size_t);

}  // namespace attnbench::kernels::cuda
