#include "attention/kernels/cuda/pool/exact.cuh"

namespace attnbench::kernels::cuda {

template std::size_t exact_pool_forward_bytes<Half>(const WholePoolSizes&);
template void exact_pool_forward<Half>(const WholePoolSizes&, const WholePoolArguments<Half>&,
                                       Stream, void*, std::size_t);
template std::size_t exact_pool_backward_bytes<Half>(const WholePoolSizes&);
template void exact_pool_backward<Half>(const WholePoolSizes&, const WholePoolArguments<Half>&,
                                        const PrefixPoolGradients<Half>&, Stream, void*,
                                        std::size_t);

}  // namespace attnbench::kernels::cuda
