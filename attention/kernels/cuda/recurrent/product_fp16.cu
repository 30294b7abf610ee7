#include "attention/kernels/cuda/recurrent/launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t recurrent_forward_bytes<ProductFamily, Half>(const RecurrentShape&);
template void recurrent_forward<ProductFamily, Half>(RecurrentArguments<Half>,
                                                     const RecurrentShape&, Stream, void*,
                                                     std::size_t);
template RecurrentState recurrent_borders<ProductFamily, Half>(const RecurrentArguments<Half>&,
                                                               const RecurrentPlan&, std::int64_t,
                                                               Stream, const RecurrentState&);

}  // namespace attnbench::kernels::cuda
