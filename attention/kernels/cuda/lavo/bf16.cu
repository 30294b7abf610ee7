#include "attention/kernels/cuda/lavo/launch.cuh"

namespace attnbench::kernels::cuda {

ATTNBENCH_INSTANTIATE_MEMORY(BFloat16)

}  // namespace attnbench::kernels::cuda
