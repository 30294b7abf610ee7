// harness/measure/cuda_loops.hpp on the cards that only pretend, at rates of round numbers.
#include "harness/measure/cuda_loops.hpp"
#include "tests/program/pretend/pretend.hpp"

namespace attnbench::measure {

CudaLoops::CudaLoops(const kernels::cuda::Card& card)
    : blocks_(card.multiprocessors), sink_(nullptr), counts_(nullptr) {}

CudaLoops::~CudaLoops() = default;

double CudaLoops::multiply_add(std::int64_t rounds, kernels::cuda::Stream) const {
  const double operations = 1e6 * blocks_ * static_cast<double>(rounds);
  pretend::take(operations / pretend::fma_flops_per_second);
  return operations;
}

double CudaLoops::exponentials(std::int64_t rounds, kernels::cuda::Stream) const {
  const double count = 1e6 * blocks_ * static_cast<double>(rounds);
  pretend::take(count / pretend::exponentials_per_second);
  return count;
}

double CudaLoops::clock_hz(kernels::cuda::Stream) const { return pretend::clock_hz; }

double greatest_clock_hz() { return pretend::greatest_clock_hz; }

}  // namespace attnbench::measure
