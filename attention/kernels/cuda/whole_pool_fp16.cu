#include "attention/kernels/cuda/whole_pool_launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t pool_forward_bytes<Half>(const WholePoolSizes&);
template void pool_forward<Half>(const WholePoolSizes&, const WholePoolArguments<Half>&, Stream,
                                 void*, std::size_t);

}  // namespace attnbench::kernels::cuda
