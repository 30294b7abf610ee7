#include "attention/kernels/cuda/recurrent/launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t recurrent_forward_bytes<PoolFamily, BFloat16>(const RecurrentShape&);
template void recurrent_forward<PoolFamily, BFloat16>(RecurrentArguments<BFloat16>,
                                                      const RecurrentShape&, Stream, void*,
                                                      std::size_t);
template void recurrent_states<PoolFamily, BFloat16>(RecurrentArguments<BFloat16>,
                                                     const RecurrentShape&, const RecurrentPlan&,
                                                     Stream);
template RecurrentState recurrent_borders<PoolFamily, BFloat16>(const RecurrentArguments<BFloat16>&,
                                                                const RecurrentPlan&, std::int64_t,
                                                                Stream, const RecurrentState&);

}  // namespace attnbench::kernels::cuda
