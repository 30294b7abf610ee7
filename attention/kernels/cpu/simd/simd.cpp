#include "attention/kernels/cpu/simd/simd.hpp"

#include <atomic>

#include "attention/kernels/cpu/simd/amx.hpp"

namespace attnbench::kernels {
namespace {

Isa detected() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl")) {
    return amx::usable() ? Isa::amx : Isa::avx512;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
  return Isa::baseline;
}

std::atomic<Isa> limit{Isa::amx};

}  // namespace

Isa best_isa() {
  static const Isa found = detected();
  const Isa most = limit;
  return found < most ? found : most;
}

void limit_isa(Isa isa) { limit = isa; }

}  // namespace attnbench::kernels
