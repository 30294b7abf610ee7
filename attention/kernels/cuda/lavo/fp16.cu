#include "attention/kernels/cuda/lavo/launch.cuh"

namespace attnbench::kernels::cuda {

ATTNBENCH_INSTANTIATE_MEMORY(Half)

}  // namespace attnbench::kernels::cuda
