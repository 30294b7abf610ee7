// For the .cu files: errors of CUDA calls, the stream as CUDA knows it, launches with much shared
// memory.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "attention/kernels/cuda/device.hpp"

namespace attnbench::kernels::cuda {

inline void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  cudaGetLastError();  // or the next launch would be blamed for it
  throw Error(std::string(call) + ": " + cudaGetErrorString(error) + " (" +
              cudaGetErrorName(error) + ")");
}

inline cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }

/// Launches `kernel` with `shared_bytes` of dynamic shared memory, more than the default 48 KiB
/// where the card has it. Throws Error where the launch is refused.
template <class... Parameters, class... Given>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, std::size_t shared_bytes,
            Stream stream, const Given&... given) {
  if (shared_bytes > 48 * 1024) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)),
          "cudaFuncSetAttribute");
  }
  kernel<<<grid, block, shared_bytes, native(stream)>>>(given...);
  check(cudaGetLastError(), "launch");
}

}  // namespace attnbench::kernels::cuda
