#include "attention/kernels/cuda/lavo/launch.cuh"

namespace attnbench::kernels::cuda {

ATTNBENCH_INSTANTIATE_MEMORY(float)

}  // namespace attnbench::kernels::cuda
