#include "attention/kernels/cuda/recurrent/backward_launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t recurrent_backward_bytes<PoolFamily, float>(const RecurrentShape&);
template void recurrent_backward<PoolFamily, float>(RecurrentArguments<float>,
                                                    const RecurrentGradients<float>&,
                                                    const RecurrentShape&, Stream, void*,
                                                    std::size_t);

}  // namespace attnbench::kernels::cuda
