#include "attention/kernels/cuda/running_memory_launch.cuh"

namespace attnbench::kernels::cuda {

ATTNBENCH_INSTANTIATE_MEMORY(Half)

}  // namespace attnbench::kernels::cuda
