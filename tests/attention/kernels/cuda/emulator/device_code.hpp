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
inline int __syncthreads_count(int x) { return attnbench::emulated::block_barrier(x != 0); }
inline void __syncwarp(unsigned = ~0u) { attnbench::emulated::warp_barrier(); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __nanosleep(unsigned) {}

template <class T>
T __shfl_xor_sync(unsigned, T x, int mask, int width = 32) {
  return attnbench::emulated::shuffle(x, [=](int lane) {
    const int from = lane ^ mask;
    return from / width == lane / width ? from : lane;
  });
}
template <class T>
T __shfl_sync(unsigned, T x, int from, int width = 32) {
  return attnbench::emulated::shuffle(
      x, [=](int lane) { return lane / width * width + from % width; });
}
template <class T>
T __shfl_up_sync(unsigned, T x, unsigned by, int width = 32) {
  return attnbench::emulated::shuffle(x, [=](int lane) {
    const int from = lane - static_cast<int>(by);
    return from >= lane / width * width ? from : lane;
  });
}
template <class T>
T __shfl_down_sync(unsigned, T x, unsigned by, int width = 32) {
  return attnbench::emulated::shuffle(x, [=](int lane) {
    const int from = lane + static_cast<int>(by);
    return from < (lane / width + 1) * width ? from : lane;
  });
}
inline unsigned __ballot_sync(unsigned, int x) { return attnbench::emulated::ballot(x != 0); }
inline int __any_sync(unsigned, int x) { return attnbench::emulated::ballot(x != 0) != 0; }
inline int __all_sync(unsigned, int x) { return attnbench::emulated::ballot(x == 0) == 0; }

template <class T>
T atomicAdd(T* to, T x) {
  const T before = *to;
  *to = before + x;
  return before;
}
template <class T>
T atomicMax(T* to, T x) {
  const T before = *to;
  *to = std::max(before, x);
  return before;
}

template <class T>
T __ldg(const T* from) {
  return *from;
}
inline std::size_t __cvta_generic_to_shared(const void* pointer) {
  return attnbench::emulated::shared_address(pointer);
}
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __log2f(float x) { return std::log2(x); }
inline float __fdividef(float x, float y) { return x / y; }
inline float __frcp_rn(float x) { return 1 / x; }
inline float __fmul_rn(float x, float y) { return x * y; }
inline float __fadd_rn(float x, float y) { return x + y; }
inline unsigned __float_as_uint(float x) { return attnbench::emulated::same_bits<unsigned>(x); }
inline int __float_as_int(float x) { return attnbench::emulated::same_bits<int>(x); }
inline float __uint_as_float(unsigned x) { return attnbench::emulated::same_bits<float>(x); }
inline float __int_as_float(int x) { return attnbench::emulated::same_bits<float>(x); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline float __saturatef(float x) { return x > 0 ? (x < 1 ? x : 1) : 0; }
using std::max;
using std::min;
