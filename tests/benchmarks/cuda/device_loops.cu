#include "tests/benchmarks/cuda/device_loops.hpp"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "attention/kernels/cuda/launch.cuh"

namespace attnbench::bench {
namespace {

using kernels::BFloat16;
using kernels::Half;
using kernels::cuda::card;

constexpr int block = 256;

__device__ void store(float x, float* to) { *to = x; }
__device__ void store(float x, BFloat16* to) {
  to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(x));
}
__device__ void store(float x, Half* to) { to->bits = __half_as_ushort(__float2half_rn(x)); }

/// 64 well mixed bits of a counter: the finaliser of splitmix64 (Steele et al. 2014).
__device__ std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

/// Two numbers a step by Box and Muller's method.
template <class T>
__global__ void normal(T* data, std::int64_t count, std::uint64_t seed) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; 2 * i < count;
       i += stride) {
    const std::uint64_t bits = mixed(mixed(seed) ^ static_cast<std::uint64_t>(i));
    const float u = (static_cast<float>(bits >> 40) + 0.5f) * 0x1p-24f;  // in (0, 1)
    const float v = static_cast<float>((bits & 0xffffffu)) * 0x1p-23f;   // in [0, 2)
    const float radius = sqrtf(-2.0f * logf(u));
    store(radius * cospif(v), data + 2 * i);
    if (2 * i + 1 < count) store(radius * sinpif(v), data + 2 * i + 1);
  }
}

__device__ std::uint64_t nanoseconds() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
  return time;
}

/// out: clock cycles and nanoseconds of about 0.2 ms. Begins where the timer has just ticked.
__global__ void count_cycles(long long* out) {
  const std::uint64_t before = nanoseconds();
  std::uint64_t begin = before;
  while (begin == before) begin = nanoseconds();
  const long long first = clock64();
  std::uint64_t end = begin;
  while (end - begin < 200'000) end = nanoseconds();
  out[0] = clock64() - first;
  out[1] = static_cast<long long>(end - begin);
}

}  // namespace

template <class T>
void fill_normal(T* data, std::int64_t count, std::uint64_t seed, Stream stream) {
  if (count <= 0) return;
  kernels::cuda::launch(normal<T>, card().multiprocessors * 8, block, 0, stream, data, count, seed);
}
template void fill_normal(float*, std::int64_t, std::uint64_t, Stream);
template void fill_normal(BFloat16*, std::int64_t, std::uint64_t, Stream);
template void fill_normal(Half*, std::int64_t, std::uint64_t, Stream);

double clock_hz(Stream stream) {
  static void* const counted = kernels::cuda::allocate(2 * sizeof(long long));
  kernels::cuda::launch(count_cycles, 1, 1, 0, stream, static_cast<long long*>(counted));
  long long host[2] = {};
  kernels::cuda::copy_to_host(host, counted, sizeof(host), stream);
  return host[1] > 0 ? 1e9 * static_cast<double>(host[0]) / static_cast<double>(host[1]) : 0.0;
}

void forget_error() noexcept { cudaGetLastError(); }

}  // namespace attnbench::bench
