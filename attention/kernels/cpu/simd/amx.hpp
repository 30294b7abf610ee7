// Intel's AMX: eight tiles of 16 rows of 64 bytes, and products of bfloat16 tiles that add to float
// tiles. Include this only in the .cpp files of kernels.
//
// Tiles belong to a thread, so a kernel configures and releases them within one function. In
// assembly, because an intrinsic cannot be inlined into a function that does not itself name the
// instruction set.
#pragma once

#include <cstdint>

#include "attention/kernels/cpu/simd/simd.hpp"

namespace attnbench::kernels::amx {

/// Whether this machine has AMX with bfloat16, and its system lets this process use it: Linux keeps
/// the tiles' state of those alone that ask for it, which this does.
bool usable();

#if defined(__x86_64__)

/// All tiles at their full size.
ATTNBENCH_INLINE void configure() {
  struct alignas(64) {
    std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
    std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    std::uint8_t tile_rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
  } config;
  asm volatile("ldtilecfg %0" ::"m"(config));
}
ATTNBENCH_INLINE void release() { asm volatile("tilerelease" ::: "memory"); }

template <int Tile>
ATTNBENCH_INLINE void zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(Tile));
}
/// Rows are `stride` bytes apart.
template <int Tile>
ATTNBENCH_INLINE void load(const void* from, std::int64_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(Tile) : "memory");
}
template <int Tile>
ATTNBENCH_INLINE void store(void* to, std::int64_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(Tile) : "memory");
}
/// C[m, n] += sum_k A[m, 2 k] B[k, 2 n] + A[m, 2 k + 1] B[k, 2 n + 1]: B holds pairs of its rows.
template <int C, int A, int B>
ATTNBENCH_INLINE void multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(C), "i"(A), "i"(B));
}

#endif

}  // namespace attnbench::kernels::amx
