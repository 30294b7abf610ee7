// What this card gives at most, measured in the same process as the kernels.
#pragma once

#include <map>
#include <string>

#include "tests/benchmarks/cuda/work.hpp"

namespace attnbench::bench {

struct Ceilings {
  double copy_bytes_per_second = 0;  ///< device to device, bytes read and bytes written
  double exponentials_per_second = 0;
  std::map<std::string, double> gemm_flops_per_second;  ///< of bf16, fp16, tf32, fp32
  std::string no_gemm;  ///< why there is no GEMM; empty where there is
  int blas_version = 0;
};

/// The library to load for GEMMs, before the first measurement; empty = the system's.
void use_blas(const std::string& file);

/// Measured at the first call.
const Ceilings& ceilings();

/// The works behind them, as benchmarks of their own.
Work copy_work();
Work exponential_work();
/// 8192 x 8192 x 8192 on normal numbers; `arithmetic` is bf16, fp16, tf32 or fp32.
Work gemm_work(const std::string& arithmetic);

/// Keys and numbers for Google Benchmark's context.
std::map<std::string, std::string> context();

}  // namespace attnbench::bench
