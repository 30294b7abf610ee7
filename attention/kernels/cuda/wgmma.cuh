// Hopper's warpgroup products (wgmma): 64 rows times N columns, 16 steps of the inner dimension at
// a time, accumulated as float32 in the registers of four warps.
//
// PTX ISA, "Asynchronous warpgroup level matrix instructions". Thread l of warp w of the warpgroup
// holds, of rows 16 w + l / 4 (r = 0) and 8 more (r = 1), the columns 8 i + 2 (l % 4) + e as
// d[4 i + 2 r + e]. As an operand A of 16-bit numbers the same thread holds the same rows, and of
// inner columns 2 (l % 4) + {0, 1} and 8 more, so that an accumulator becomes an operand in place.
#pragma once

#include <cstdint>
#include <type_traits>

#include "attention/kernels/rows.hpp"

namespace attnbench::kernels::cuda::sm90 {

/// A tile in shared memory in panels of 64 columns, 128 bytes a row, swizzled by 128 bytes
/// (tma.cuh), as an operand: groups of 8 rows lie 1024 bytes apart. `panel_bytes` matters to
/// `transposed` operands alone, whose inner dimension is the rows: how far apart panels lie.
__device__ __forceinline__ std::uint64_t operand(std::uint32_t address, int panel_bytes) {
  constexpr std::uint64_t swizzle_128 = std::uint64_t{1} << 62;
  constexpr std::uint64_t group = std::uint64_t{1024 >> 4} << 32;
  return swizzle_128 | group | static_cast<std::uint64_t>(panel_bytes >> 4) << 16 |
         ((address & 0x3ffff) >> 4);
}

/// The operand `bytes` further on.
__device__ __forceinline__ std::uint64_t moved(std::uint64_t operand, int bytes) {
  return operand + static_cast<std::uint64_t>(bytes >> 4);
}

/// Before the first product, and after other instructions wrote registers that products use.
__device__ __forceinline__ void products_begin() {
#ifdef ATTNBENCH_EMULATED
  emulated::wgmma_fence();
#else
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}
/// Closes a group of products.
__device__ __forceinline__ void products_commit() {
#ifdef ATTNBENCH_EMULATED
  emulated::wgmma_commit();
#else
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}
/// Waits until at most `kPending` groups are unfinished.
template <int kPending>
__device__ __forceinline__ void products_wait() {
#ifdef ATTNBENCH_EMULATED
  emulated::wgmma_wait(kPending);
#else
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
#endif
}

/// The compiler does not know that products run on behind its back: no read or write of these
/// registers moves across this.
template <class T, int kCount>
__device__ __forceinline__ void settle([[maybe_unused]] T (&registers)[kCount]) {
#ifndef ATTNBENCH_EMULATED
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      asm volatile("" : "+f"(registers[i])::"memory");
    } else {
      asm volatile("" : "+r"(registers[i])::"memory");
    }
  }
#endif
}

/// T is BFloat16 or Half.
/// shared: d (+)= A B^T, A and B in shared memory with the inner dimension along their rows.
/// registers: d += A B, A in registers; the inner dimension of B runs down its rows ("transposed").
#ifdef ATTNBENCH_EMULATED
template <class T, int kColumns>
struct Product {
  static void shared(float (&d)[kColumns / 2], std::uint64_t a, std::uint64_t b, bool add) {
    emulated::wgmma(std::is_same_v<T, Half>, kColumns, d, add, nullptr, a, b, false);
  }
  static void registers(float (&d)[kColumns / 2], const std::uint32_t* a, std::uint64_t b) {
    emulated::wgmma(std::is_same_v<T, Half>, kColumns, d, true, a, 0, b, true);
  }
};
#else
template <class T, int kColumns>
struct Product;

#define ATTNBENCH_8(d, i)                                                                     \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define ATTNBENCH_32(d, i) \
  ATTNBENCH_8(d, i), ATTNBENCH_8(d, i + 8), ATTNBENCH_8(d, i + 16), ATTNBENCH_8(d, i + 24)
#define ATTNBENCH_LIST_64(d) ATTNBENCH_32(d, 0)
#define ATTNBENCH_LIST_80(d) ATTNBENCH_32(d, 0), ATTNBENCH_8(d, 32)
#define ATTNBENCH_LIST_128(d) ATTNBENCH_32(d, 0), ATTNBENCH_32(d, 32)
#define ATTNBENCH_LIST_176(d) \
  ATTNBENCH_LIST_128(d), ATTNBENCH_8(d, 64), ATTNBENCH_8(d, 72), ATTNBENCH_8(d, 80)
#define ATTNBENCH_LIST_192(d) ATTNBENCH_LIST_128(d), ATTNBENCH_32(d, 64)
#define ATTNBENCH_LIST_256(d) ATTNBENCH_LIST_192(d), ATTNBENCH_32(d, 96)

#define ATTNBENCH_NAMES_64                                                     \
  "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20," \
  "%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define ATTNBENCH_NAMES_80 ATTNBENCH_NAMES_64 ",%32,%33,%34,%35,%36,%37,%38,%39"
#define ATTNBENCH_NAMES_128                                                       \
  ATTNBENCH_NAMES_80                                                              \
      ",%40,%41,%42,%43,%44,%45,%46,%47,%48,%49,%50,%51,%52,%53,%54,%55,%56,%57," \
      "%58,%59,%60,%61,%62,%63"
#define ATTNBENCH_NAMES_176                                                   \
  ATTNBENCH_NAMES_128                                                         \
      ",%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79,%80," \
      "%81,%82,%83,%84,%85,%86,%87"
#define ATTNBENCH_NAMES_192 ATTNBENCH_NAMES_176 ",%88,%89,%90,%91,%92,%93,%94,%95"
#define ATTNBENCH_NAMES_256                                                         \
  ATTNBENCH_NAMES_192                                                               \
      ",%96,%97,%98,%99,%100,%101,%102,%103,%104,%105,%106,%107,%108,%109,%110,"    \
      "%111,%112,%113,%114,%115,%116,%117,%118,%119,%120,%121,%122,%123,%124,%125," \
      "%126,%127"

// x0 to x5 are the numbers of the operands that follow the accumulators.
#define ATTNBENCH_PRODUCT(T, type, N, x0, x1, x2, x3, x4, x5)                                   \
  template <>                                                                                   \
  struct Product<T, N> {                                                                        \
    static __device__ __forceinline__ void shared(float (&d)[N / 2], std::uint64_t a,           \
                                                  std::uint64_t b, bool add) {                  \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #x2                                     \
                   ", 0;\n"                                                                     \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." type "." type              \
                   " {" ATTNBENCH_NAMES_##N "}, %" #x0 ", %" #x1 ", p, 1, 1, 0, 0;\n}\n"        \
                   : ATTNBENCH_LIST_##N(d)                                                      \
                   : "l"(a), "l"(b), "r"(static_cast<int>(add)));                               \
    }                                                                                           \
    static __device__ __forceinline__ void registers(float (&d)[N / 2], const std::uint32_t* a, \
                                                     std::uint64_t b) {                         \
      asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %" #x5                                     \
                   ", 0;\n"                                                                     \
                   "wgmma.mma_async.sync.aligned.m64n" #N "k16.f32." type "." type              \
                   " {" ATTNBENCH_NAMES_##N "}, {%" #x0 ",%" #x1 ",%" #x2 ",%" #x3 "}, %" #x4   \
                                            ", p, 1, 1, 1;\n}\n"                                \
                   : ATTNBENCH_LIST_##N(d)                                                      \
                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(1));               \
    }                                                                                           \
  };
#define ATTNBENCH_PRODUCTS(N, x0, x1, x2, x3, x4, x5)            \
  ATTNBENCH_PRODUCT(BFloat16, "bf16", N, x0, x1, x2, x3, x4, x5) \
  ATTNBENCH_PRODUCT(Half, "f16", N, x0, x1, x2, x3, x4, x5)

ATTNBENCH_PRODUCTS(64, 32, 33, 34, 35, 36, 37)
ATTNBENCH_PRODUCTS(80, 40, 41, 42, 43, 44, 45)
ATTNBENCH_PRODUCTS(128, 64, 65, 66, 67, 68, 69)
ATTNBENCH_PRODUCTS(176, 88, 89, 90, 91, 92, 93)
ATTNBENCH_PRODUCTS(192, 96, 97, 98, 99, 100, 101)
ATTNBENCH_PRODUCTS(256, 128, 129, 130, 131, 132, 133)

#undef ATTNBENCH_PRODUCTS
#undef ATTNBENCH_PRODUCT
#endif

/// Warpgroups of one kernel share the registers unevenly: all four warps call it, and the kernel
/// has __launch_bounds__(threads, 1).
template <int kRegisters>
__device__ __forceinline__ void registers_down() {
#ifdef ATTNBENCH_EMULATED
  emulated::set_registers(kRegisters, false);
#else
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}
template <int kRegisters>
__device__ __forceinline__ void registers_up() {
#ifdef ATTNBENCH_EMULATED
  emulated::set_registers(kRegisters, true);
#else
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
#endif
}

}  // namespace attnbench::kernels::cuda::sm90
