#include "attention/kernels/cuda/recurrent/backward_launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t recurrent_backward_bytes<PoolFamily, Half>(const RecurrentShape&);
template void recurrent_backward<PoolFamily, Half>(RecurrentArguments<Half>,
                                                   const RecurrentGradients<Half>&,
                                                   const RecurrentShape&, Stream, void*,
                                                   std::size_t);

}  // namespace attnbench::kernels::cuda
