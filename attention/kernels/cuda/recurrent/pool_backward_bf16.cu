#include "attention/kernels/cuda/recurrent/backward_launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t recurrent_backward_bytes<PoolFamily, BFloat16>(const RecurrentShape&);
template void recurrent_backward<PoolFamily, BFloat16>(RecurrentArguments<BFloat16>,
                                                       const RecurrentGradients<BFloat16>&,
                                                       const RecurrentShape&, Stream, void*,
                                                       std::size_t);

}  // namespace attnbench::kernels::cuda
