#include "attention/cuda_stream.hpp"

#include "attention/torch_cuda.hpp"

namespace attnbench {

void* cuda_stream(const at::Device& device) { return current_stream(device).handle; }

}  // namespace attnbench
