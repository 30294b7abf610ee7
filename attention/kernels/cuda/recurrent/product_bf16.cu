#include "attention/kernels/cuda/recurrent/launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t recurrent_forward_bytes<ProductFamily, BFloat16>(const RecurrentShape&);
template void recurrent_forward<ProductFamily, BFloat16>(RecurrentArguments<BFloat16>,
                                                         const RecurrentShape&, Stream, void*,
                                                         std::size_t);
template RecurrentState recurrent_borders<ProductFamily, BFloat16>(
    const RecurrentArguments<BFloat16>&, const RecurrentPlan&, std::int64_t, Stream,
    const RecurrentState&);

}  // namespace attnbench::kernels::cuda
