#include "attention/kernels/cuda/recurrent/backward_launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t recurrent_backward_bytes<ProductFamily, Half>(const RecurrentShape&);
template void recurrent_backward<ProductFamily, Half>(RecurrentArguments<Half>,
                                                      const RecurrentGradients<Half>&,
                                                      const RecurrentShape&, Stream, void*,
                                                      std::size_t);

}  // namespace attnbench::kernels::cuda
