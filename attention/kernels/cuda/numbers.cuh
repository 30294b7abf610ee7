// The numbers of rows.hpp on the device: one at a time to float and back.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "attention/kernels/rows.hpp"

namespace attnbench::kernels::cuda {

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(BFloat16 x) {
  return __uint_as_float(static_cast<unsigned>(x.bits) << 16);
}
__device__ inline float to_float(Half x) { return __half2float(__ushort_as_half(x.bits)); }

/// To nearest, ties to even.
__device__ inline void from_float(float x, float& to) { to = x; }
__device__ inline void from_float(float x, BFloat16& to) {
  to.bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
}
__device__ inline void from_float(float x, Half& to) {
  to.bits = __half_as_ushort(__float2half_rn(x));
}

}  // namespace attnbench::kernels::cuda

// Explicit instances of a kernel, INSTANTIATE being a macro of a type.
#define ATTNBENCH_FOR_CUDA_TYPES(INSTANTIATE) \
  INSTANTIATE(float) INSTANTIATE(BFloat16) INSTANTIATE(Half)
