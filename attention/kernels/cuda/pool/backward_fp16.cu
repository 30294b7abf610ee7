#include "attention/kernels/cuda/pool/slope_launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t pool_backward_bytes<Half>(const WholePoolSizes&);
template void pool_backward<Half>(const WholePoolSizes&, const WholePoolArguments<Half>&,
                                  const PrefixPoolGradients<Half>&, Stream, void*, std::size_t);

}  // namespace attnbench::kernels::cuda
