#include "attention/kernels/cuda/pool/directed_launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t directed_pool_forward_bytes<Half>(const WholePoolSizes&);
template void directed_pool_forward<Half>(const WholePoolSizes&, const WholePoolArguments<Half>&,
                                          Stream, void*, std::size_t);

}  // namespace attnbench::kernels::cuda
