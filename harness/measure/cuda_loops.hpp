// Loops that a CUDA device is rated by: multiply-adds and exponentials from registers, and the
// clock. No CUDA header here.
#pragma once

#include <cstdint>

#include "attention/kernels/cuda/device.hpp"

namespace attnbench::measure {

/// Launches that fill the device; each thread computes independent chains.
struct CudaLoops {
  explicit CudaLoops(const kernels::cuda::Card& card);
  ~CudaLoops();
  CudaLoops(const CudaLoops&) = delete;
  CudaLoops& operator=(const CudaLoops&) = delete;

  /// Queue a launch and return its number of floating-point operations, or of exponentials.
  double multiply_add(std::int64_t rounds, kernels::cuda::Stream stream) const;
  double exponentials(std::int64_t rounds, kernels::cuda::Stream stream) const;
  /// The clock of a multiprocessor during multiply-adds, in Hz; waits for the result.
  double clock_hz(kernels::cuda::Stream stream) const;

 private:
  int blocks_;
  float* sink_;           ///< never written; no compiler can know that
  std::int64_t* counts_;  ///< cycles and nanoseconds of the first block
};

/// The card's maximum clock in Hz; 0 where the driver does not report it.
double max_clock_hz();

}  // namespace attnbench::measure
