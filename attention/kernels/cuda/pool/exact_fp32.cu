#include "attention/kernels/cuda/pool/exact.cuh"

namespace attnbench::kernels::cuda {

template std::size_t exact_pool_forward_bytes<float>(const WholePoolSizes&);
template void exact_pool_forward<float>(const WholePoolSizes&, const WholePoolArguments<float>&,
                                        Stream, void*, std::size_t);
template std::size_t exact_pool_backward_bytes<float>(const WholePoolSizes&);
template void exact_pool_backward<float>(const WholePoolSizes&, const WholePoolArguments<float>&,
                                         const PrefixPoolGradients<float>&, Stream, void*,
                                         std::size_t);

}  // namespace attnbench::kernels::cuda
