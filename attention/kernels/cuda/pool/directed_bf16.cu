#include "attention/kernels/cuda/pool/directed_launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t directed_pool_forward_bytes<BFloat16>(const WholePoolSizes&);
template void directed_pool_forward<BFloat16>(const WholePoolSizes&,
                                              const WholePoolArguments<BFloat16>&, Stream, void*,
                                              std::size_t);

}  // namespace attnbench::kernels::cuda
