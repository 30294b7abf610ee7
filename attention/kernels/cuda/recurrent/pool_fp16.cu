#include "attention/kernels/cuda/recurrent/launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t recurrent_forward_bytes<PoolFamily, Half>(const RecurrentShape&);
template void recurrent_forward<PoolFamily, Half>(RecurrentArguments<Half>, const RecurrentShape&,
                                                  Stream, void*, std::size_t);
template void recurrent_states<PoolFamily, Half>(RecurrentArguments<Half>, const RecurrentShape&,
                                                 const RecurrentPlan&, Stream);

}  // namespace attnbench::kernels::cuda
