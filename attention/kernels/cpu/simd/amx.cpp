#include "attention/kernels/cpu/simd/amx.hpp"

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace attnbench::kernels::amx {

#if defined(__x86_64__) && defined(__linux__)

namespace {

bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned bf16 = 1u << 22;
  constexpr unsigned tiles = 1u << 24;
  return (d & bf16) != 0 && (d & tiles) != 0;
}

bool granted() {
  constexpr int request = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int tile_data = 18;
  return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

}  // namespace

bool usable() {
  static const bool yes = has_instructions() && granted();
  return yes;
}

#else

bool usable() { return false; }

#endif

}  // namespace attnbench::kernels::amx
