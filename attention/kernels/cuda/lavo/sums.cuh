// Before queries read: the sums of the tokens of each segment. And behind them: what is carried on.
#pragma once

#include "attention/kernels/cuda/lavo/block.cuh"

namespace attnbench::kernels::cuda {

constexpr int memory_sum_threads = 256;

/// A block takes a head and a segment, each of its warps every eighth token.
template <class T>
__global__ void __launch_bounds__(memory_sum_threads) memory_sums(const MemoryArguments<T> a) {
  constexpr int warps = memory_sum_threads / 32;
  __shared__ float partial[warps][most_memory_dim];
  const int head = static_cast<int>(blockIdx.x), k = static_cast<int>(blockIdx.y);
  const int b = head / a.heads, h = head % a.heads;
  const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
  const MemorySegments& cut = a.plan.summing;
  const int end = cut.end(k);
  const std::uint8_t* const mask =
      a.mask == nullptr ? nullptr : a.mask + static_cast<std::int64_t>(b) * a.mask_stride;
  for (int d = lane; d < a.dim; d += 32) {
    float sum = 0;
#pragma unroll 8
    for (int t = cut.begin(k) + warp; t < end; t += warps) {
      if (mask == nullptr || mask[t] != 0) sum += to_float(a.tokens.at(b, h, t)[d]);
    }
    partial[warp][d] = sum;
  }
  int count = 0;
  for (int t = cut.begin(k) + warp; t < end; t += warps) {
    count += mask == nullptr || mask[t] != 0 ? 1 : 0;
  }
  __shared__ int counts[warps];
  if (lane == 0) counts[warp] = count;
  __syncthreads();
  const std::int64_t place = static_cast<std::int64_t>(head) * cut.count + k;
  for (int d = threadIdx.x; d < a.dim; d += memory_sum_threads) {
    float x = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) x += partial[w][d];
    a.sums[place * a.dim + d] = x;
  }
  if (threadIdx.x == 0 && h == 0) {
    int all = 0;
#pragma unroll
    for (int w = 0; w < warps; ++w) all += counts[w];
    a.counts[b * cut.count + k] = all;
  }
}

/// What one block left for the next call while others still read what came before.
struct MemoryAdvance {
  MemoryCarry<float> from, to;
  std::int64_t means = 0, sums = 0;  ///< numbers of each; 0 where they are in their place already
  std::int64_t batch = 0;
};

inline __global__ void __launch_bounds__(memory_sum_threads)
    memory_advance(const MemoryAdvance carry) {
  const std::int64_t i = std::int64_t{blockIdx.x} * memory_sum_threads + threadIdx.x;
  if (i < carry.means) carry.to.mean[i] = carry.from.mean[i];
  if (i < carry.sums) carry.to.sum[i] = carry.from.sum[i];
  if (i >= carry.batch) return;
  carry.to.count[i] = carry.from.count[i];
  if (carry.to.sum_count != nullptr) carry.to.sum_count[i] = carry.from.sum_count[i];
}

}  // namespace attnbench::kernels::cuda
