#include "attention/kernels/cuda/pool/launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t pool_forward_bytes<Half>(const WholePoolSizes&);
template void pool_forward<Half>(const WholePoolSizes&, const WholePoolArguments<Half>&, Stream,
                                 void*, std::size_t);
template void pool_averages<Half>(const WholePoolSizes&, const WholePoolArguments<Half>&,
                                  const ExactPool&, Stream);

}  // namespace attnbench::kernels::cuda
