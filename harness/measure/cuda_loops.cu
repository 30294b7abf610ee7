#include "attention/kernels/cuda/launch.cuh"
#include "harness/measure/cuda_loops.hpp"

namespace attnbench::measure {
namespace {

namespace cuda = kernels::cuda;

constexpr int threads_per_block = 256;
constexpr int blocks_per_multiprocessor = 8;
/// Chains that do not wait for one another: more than the latency of the slowest unit.
constexpr int chains = 8;

__device__ std::int64_t nanoseconds() {
  std::int64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

/// 2^-x: the negation costs nothing, and without it the numbers would run away.
__device__ float exponential_of_negative(float x) {
  float y;
  asm volatile("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(-x));
  return y;
}

template <class Step>
__device__ void run_chains(std::int64_t rounds, float* sink, const Step& step) {
  float x[chains];
  for (int i = 0; i < chains; ++i) x[i] = 0.5F + 0.01F * static_cast<float>(i + threadIdx.x);
  for (std::int64_t round = 0; round < rounds; ++round) {
#pragma unroll
    for (int i = 0; i < chains; ++i) x[i] = step(x[i]);
  }
  float sum = 0;
  for (int i = 0; i < chains; ++i) sum += x[i];
  if (sum == -1.0F) *sink = sum;
}

__global__ void multiply_add_kernel(std::int64_t rounds, float* sink, std::int64_t* counts) {
  const std::int64_t began = nanoseconds();
  const long long cycles = clock64();
  run_chains(rounds, sink, [](float x) { return fmaf(x, 0.999F, 0.001F); });
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    counts[0] = clock64() - cycles;
    counts[1] = nanoseconds() - began;
  }
}

__global__ void exponential_kernel(std::int64_t rounds, float* sink) {
  run_chains(rounds, sink, [](float x) { return exponential_of_negative(x); });
}

}  // namespace

CudaLoops::CudaLoops(const cuda::Card& card)
    : blocks_(card.multiprocessors * blocks_per_multiprocessor),
      sink_(static_cast<float*>(cuda::allocate(sizeof(float)))),
      counts_(static_cast<std::int64_t*>(cuda::allocate(2 * sizeof(std::int64_t)))) {}

CudaLoops::~CudaLoops() {
  cuda::release(sink_);
  cuda::release(counts_);
}

double CudaLoops::multiply_add(std::int64_t rounds, cuda::Stream stream) const {
  cuda::launch(multiply_add_kernel, dim3(blocks_), dim3(threads_per_block), 0, stream, rounds,
               sink_, counts_);
  return 2.0 * chains * threads_per_block * blocks_ * static_cast<double>(rounds);
}

double CudaLoops::exponentials(std::int64_t rounds, cuda::Stream stream) const {
  cuda::launch(exponential_kernel, dim3(blocks_), dim3(threads_per_block), 0, stream, rounds,
               sink_);
  return 1.0 * chains * threads_per_block * blocks_ * static_cast<double>(rounds);
}

double CudaLoops::clock_hz(cuda::Stream stream) const {
  multiply_add(20'000, stream);
  std::int64_t counts[2];
  cuda::copy_to_host(counts, counts_, sizeof(counts), stream);
  return 1e9 * static_cast<double>(counts[0]) / static_cast<double>(counts[1]);
}

double max_clock_hz() {
  int device = 0;
  int kilohertz = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return 0;
  if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device) != cudaSuccess) return 0;
  return 1e3 * kilohertz;
}

}  // namespace attnbench::measure
