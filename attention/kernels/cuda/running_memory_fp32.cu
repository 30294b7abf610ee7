#include "attention/kernels/cuda/running_memory_launch.cuh"

namespace attnbench::kernels::cuda {

ATTNBENCH_INSTANTIATE_MEMORY(float)

}  // namespace attnbench::kernels::cuda
