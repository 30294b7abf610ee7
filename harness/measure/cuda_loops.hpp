// Loops that a CUDA device is rated by: multiply-adds and exponentials from registers, and the
// clock. No CUDA header here.
#pragma once

#include <cstdint>

#include "attention/kernels/cuda/device.hpp"

namespace attnbench::measure {

/// One launch that fills the device, each thread busy with independent chains.
struct CudaLoops {
  explicit CudaLoops(const kernels::cuda::Card& card);
  ~CudaLoops();
  CudaLoops(const CudaLoops&) = delete;
  CudaLoops& operator=(const CudaLoops&) = delete;

  /// Queues them; return how many floating-point operations, or exponentials, that is.
  double multiply_add(std::int64_t rounds, kernels::cuda::Stream stream) const;
  double exponentials(std::int64_t rounds, kernels::cuda::Stream stream) const;
  /// Cycles per second of a multiprocessor while it is busy with multiply-adds; waits for it.
  double clock_hz(kernels::cuda::Stream stream) const;

 private:
  int blocks_;
  float* sink_;           ///< never written, which no compiler can know
  std::int64_t* counts_;  ///< cycles and nanoseconds of the first block
};

/// What the card's clock may rise to, in Hz; 0 where the driver does not say.
double greatest_clock_hz();

}  // namespace attnbench::measure
