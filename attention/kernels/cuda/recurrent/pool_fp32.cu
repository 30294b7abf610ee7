#include "attention/kernels/cuda/recurrent/launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t recurrent_forward_bytes<PoolFamily, float>(const RecurrentShape&);
template void recurrent_forward<PoolFamily, float>(RecurrentArguments<float>, const RecurrentShape&,
                                                   Stream, void*, std::size_t);

}  // namespace attnbench::kernels::cuda
