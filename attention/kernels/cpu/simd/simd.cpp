#include "attention/kernels/cpu/simd/simd.hpp"

#include <atomic>

#include "attention/kernels/cpu/simd/amx.hpp"

#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace attnbench::kernels {
namespace {

#if defined(__x86_64__)
Isa detected() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vbmi")) {
      return Isa::avx512;
    }
    if (amx::usable()) return Isa::amx;
    // Intel's processors multiply pairs by vdpbf16ps at half the rate of floats: NOTES.md.
    return __builtin_cpu_is("amd") ? Isa::avx512_bf16 : Isa::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
  return Isa::baseline;
}
#elif defined(__aarch64__)
Isa detected() { return (getauxval(AT_HWCAP) & HWCAP_ASIMD) != 0 ? Isa::neon : Isa::baseline; }
#else
Isa detected() { return Isa::baseline; }
#endif

std::atomic<Isa> limit{Isa::amx};

}  // namespace

Isa best_isa() {
  static const Isa found = detected();
  const Isa most = limit;
  return found < most ? found : most;
}

void limit_isa(Isa isa) { limit = isa; }

}  // namespace attnbench::kernels
