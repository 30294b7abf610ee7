// For the .cu files: errors of CUDA calls, the stream as CUDA knows it, launches with much shared
// memory.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "attention/kernels/cuda/device.hpp"

/// A pointer `name` to the block's dynamic shared memory. Under the tests' emulator, which compiles
/// these sources as C++ (ATTNBENCH_EMULATED), it is defined there.
#ifndef ATTNBENCH_EMULATED
#define ATTNBENCH_SHARED(type, name, alignment) \
  extern __shared__ __align__(alignment)        \
  unsigned char attnbench_shared_bytes[];       \
  type* const name = reinterpret_cast<type*>(attnbench_shared_bytes)
#endif

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
#ifdef ATTNBENCH_EMULATED
  (void)stream;
  emulated::launch({grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared_bytes,
                   [=] { kernel(given...); });
#else
  if (shared_bytes > 48 * 1024) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shared_bytes)),
          "cudaFuncSetAttribute");
  }
  kernel<<<grid, block, shared_bytes, native(stream)>>>(given...);
  check(cudaGetLastError(), "launch");
#endif
}

}  // namespace attnbench::kernels::cuda
