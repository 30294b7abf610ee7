#include "attention/kernels/cuda/recurrent/launch.cuh"

namespace attnbench::kernels::cuda {

template std::size_t recurrent_forward_bytes<ProductFamily, float>(const RecurrentShape&);
template void recurrent_forward<ProductFamily, float>(RecurrentArguments<float>,
                                                      const RecurrentShape&, Stream, void*,
                                                      std::size_t);

}  // namespace attnbench::kernels::cuda
