// LibTorch's CUDA stream, lent to the CUDA kernels of a plugin.
#pragma once

#include "attention/torch/torch.hpp"

namespace attnbench {

/// Where LibTorch queues this thread's work on a CUDA device: a cudaStream_t, null = the default
/// stream. Memory that LibTorch hands out is safe to use there and nowhere else.
void* cuda_stream(const at::Device& device);

}  // namespace attnbench
