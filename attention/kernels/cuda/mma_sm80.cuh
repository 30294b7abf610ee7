// The instructions of Ampere that tensor-core kernels are made of (they run on every later card),
// each in a function: asynchronous copies into shared memory, fragments of 16-bit matrices,
// products of 16 x 16 by 16 x 8. Nothing else in the tree spells them.
//
// Fragments follow PTX's mma.m16n8k16. With g = lane / 4 and i = lane % 4, an accumulator holds
// (g, 2i), (g, 2i + 1), (g + 8, 2i), (g + 8, 2i + 1); two accumulators side by side, rounded and
// packed in pairs, are the left operand of a next product.
//
// Compiled for the tests' emulator (ATTNBENCH_EMULATED), every function is that of the same meaning
// there, which has been included before.
#pragma once

#include <cstdint>

#include "attention/kernels/rows.hpp"

#ifndef ATTNBENCH_EMULATED
#include <cuda_runtime.h>
#endif

namespace attnbench::kernels::cuda {

/// An address within shared memory.
__device__ inline std::uint32_t shared_address(const void* pointer) {
#ifdef ATTNBENCH_EMULATED
  return emulated::shared_address(pointer);
#else
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
#endif
}

/// Begins to copy 16 bytes into shared memory, of which those from `bytes` on become 0 and are not
/// read; both sides aligned to 16.
__device__ inline void copy_async(std::uint32_t to, const void* from, int bytes) {
#ifdef ATTNBENCH_EMULATED
  emulated::copy_async(to, from, bytes);
#else
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes)
               : "memory");
#endif
}

/// Closes the group of copies that this thread has begun since the last.
__device__ inline void commit_copies() {
#ifdef ATTNBENCH_EMULATED
  emulated::commit_copies();
#else
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/// Waits until at most `Pending` groups of this thread are under way.
template <int Pending>
__device__ inline void wait_copies() {
#ifdef ATTNBENCH_EMULATED
  emulated::wait_copies(Pending);
#else
  asm volatile("cp.async.wait_group %0;" ::"n"(Pending) : "memory");
#endif
}

/// Four 8 x 8 matrices of 16-bit numbers; lanes 8n to 8n + 7 give the addresses of the rows of
/// matrix n, and word n of lane 4g + i is that matrix's (g, 2i) and (g, 2i + 1).
__device__ inline void load_matrices(std::uint32_t (&to)[4], std::uint32_t address) {
#ifdef ATTNBENCH_EMULATED
  emulated::load_matrices(to, address, false);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
#endif
}

/// The same, transposed: (2i, g) and (2i + 1, g).
__device__ inline void load_matrices_transposed(std::uint32_t (&to)[4], std::uint32_t address) {
#ifdef ATTNBENCH_EMULATED
  emulated::load_matrices(to, address, true);
#else
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
#endif
}

/// The transpose of an 8 x 8 matrix that the warp holds.
__device__ inline std::uint32_t transpose_matrix(std::uint32_t x) {
#ifdef ATTNBENCH_EMULATED
  return emulated::transpose_matrix(x);
#else
  std::uint32_t y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
#endif
}

/// sum += a b: 16 x 16 by 16 x 8, numbers of type T = BFloat16 or Half, sums in float.
template <class T>
__device__ inline void multiply_add(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                                    std::uint32_t b1);
template <>
__device__ inline void multiply_add<BFloat16>(float (&sum)[4], const std::uint32_t (&a)[4],
                                              std::uint32_t b0, std::uint32_t b1) {
#ifdef ATTNBENCH_EMULATED
  emulated::multiply_add_k16<BFloat16>(sum, a, b0, b1);
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}
template <>
__device__ inline void multiply_add<Half>(float (&sum)[4], const std::uint32_t (&a)[4],
                                          std::uint32_t b0, std::uint32_t b1) {
#ifdef ATTNBENCH_EMULATED
  emulated::multiply_add_k16<Half>(sum, a, b0, b1);
#else
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#endif
}

/// Two numbers rounded to nearest, `low` in the lower half of the word.
template <class T>
__device__ inline std::uint32_t pack_pair(float low, float high);
template <>
__device__ inline std::uint32_t pack_pair<BFloat16>(float low, float high) {
#ifdef ATTNBENCH_EMULATED
  return emulated::pack_pair<BFloat16>(low, high);
#else
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#endif
}
template <>
__device__ inline std::uint32_t pack_pair<Half>(float low, float high) {
#ifdef ATTNBENCH_EMULATED
  return emulated::pack_pair<Half>(low, high);
#else
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
#endif
}

/// 2^x by the special-function unit, to 2 ulp; 0 for -infinity and for results below 2^-126.
__device__ inline float exp2_fast(float x) {
#ifdef ATTNBENCH_EMULATED
  return emulated::exp2_fast(x);
#else
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#endif
}

}  // namespace attnbench::kernels::cuda
