// The loops behind the CPU's ceilings, for the widest vectors this machine has.
#pragma once

#include <cstdint>

namespace attnbench::measure {

/// A set of loops. Each returns a number made of its results, so that nothing is optimised away.
struct CpuLoops {
  const char* isa = "";
  /// `rounds` times as many independent multiply-adds of vectors in registers as hide their
  /// latency.
  float (*multiply_add)(std::int64_t rounds) = nullptr;
  double flops_per_round = 0;
  /// 2^x of `count` numbers, by range reduction and a polynomial of degree 6 (2e-7 relative error).
  /// `count` is a multiple of 64; both arrays are 64-byte aligned.
  void (*exponentials)(const float* from, float* to, std::int64_t count) = nullptr;
  /// Reads `count` numbers, a multiple of 128, 64-byte aligned.
  float (*read)(const float* from, std::int64_t count) = nullptr;
};

/// The fastest set here: AVX-512, AVX2 with FMA, NEON, or plain C++.
const CpuLoops& cpu_loops();

/// The plain set, for machines without any and for tests.
const CpuLoops& portable_loops();

}  // namespace attnbench::measure
