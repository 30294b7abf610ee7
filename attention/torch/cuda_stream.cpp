#include "attention/torch/cuda_stream.hpp"

#include "attention/torch/cuda.hpp"

namespace attnbench {

void* cuda_stream(const at::Device& device) { return current_stream(device).handle; }

}  // namespace attnbench
