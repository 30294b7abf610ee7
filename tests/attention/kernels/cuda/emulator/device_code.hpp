// What CUDA's language and its built-in functions are when the sources of kernels are compiled as
// C++ for the emulator. Included before everything else of such a source (see
// tests/CMakeLists.txt).
#pragma once

#include <cuda_runtime.h>

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tests/attention/kernels/cuda/emulator/instructions.hpp"
#include "tests/attention/kernels/cuda/emulator/launching.hpp"
#include "tests/attention/kernels/cuda/emulator/threads.hpp"

// CUDA's headers make these empty for a C++ compiler, or attributes that it does not know.
#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __shared__
#undef __launch_bounds__
#undef __grid_constant__
#undef __forceinline__
#define __global__
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static
#define __launch_bounds__(...)
#define __grid_constant__
#define __forceinline__ inline

#define threadIdx (::attnbench::emulated::self().thread)
#define blockIdx (::attnbench::emulated::self().block)
#define blockDim (::attnbench::emulated::self().block_size)
#define gridDim (::attnbench::emulated::self().grid_size)

/// See launch.cuh.
#define ATTNBENCH_SHARED(type, name, alignment) \
  type* const name = reinterpret_cast<type*>(::attnbench::emulated::shared_memory())

inline void __syncthreads() { attnbench::emulated::block_barrier(); }
inline int __syncthreads_or(int x) { return attnbench::emulated::block_barrier(x != 0) > 0; }
inline void __syncwarp(unsigned = ~0u) { attnbench::emulated::warp_barrier(); }

template <class T>
T __shfl_xor_sync(unsigned, T x, int mask, int width = 32) {
  return attnbench::emulated::shuffle(x, [=](int lane) {
    const int from = lane ^ mask;
    return from / width == lane / width ? from : lane;
  });
}
inline int __any_sync(unsigned, int x) { return attnbench::emulated::ballot(x != 0) != 0; }

inline std::size_t __cvta_generic_to_shared(const void* pointer) {
  return attnbench::emulated::shared_address(pointer);
}
inline float __uint_as_float(unsigned x) { return attnbench::emulated::same_bits<float>(x); }
using std::max;
using std::min;
