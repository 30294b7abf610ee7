// Tiles of queries read the running memory. A block takes one head and one segment.
#pragma once

#include "attention/kernels/cuda/lavo/block.cuh"

namespace attnbench::kernels::cuda {

/// The greatest, or the sum, of a warp's numbers.
__device__ inline float warp_most(float x) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, i));
  return x;
}
__device__ inline float warp_sum(float x) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) x += __shfl_xor_sync(~0u, x, i);
  return x;
}

/// c becomes a u with a = softmax(c u), for the coordinates of one query; a whole warp.
__device__ inline void weigh_row(float* c, const float* u, int count, float scale) {
  const int lane = threadIdx.x & 31;
  float top = -INFINITY;
  for (int j = lane; j < count; j += 32) top = fmaxf(top, scale * c[j] * u[j]);
  top = warp_most(top);
  float sum = 0;
  for (int j = lane; j < count; j += 32) {
    const float weight = exp2f(scale * c[j] * u[j] - top);
    sum += weight;
    c[j] = weight * u[j];
  }
  const float by = 1 / warp_sum(sum);
  for (int j = lane; j < count; j += 32) c[j] *= by;
}

/// The sum of the tokens of the window that this call leaves begun; before any result is written,
/// since results may be written over tokens. For windows shorter than a tile.
template <class T>
__device__ inline void sum_last_window(const MemoryPast<T>& block) {
  const MemoryArguments<T>& a = block.a;
  const int length = a.plan.reading.tokens, begin = a.plan.windows.begin(length);
  const bool goes_on = length < a.plan.windows.first;
  const int first = goes_on ? 0 : begin;
  for (int d = threadIdx.x; d < a.dim; d += memory_threads) {
    float sum = goes_on ? block.sum[d] : 0;
    for (int t = first; t < length; ++t) {
      const std::uint8_t* const mask = block.mask(t);
      if (mask == nullptr || *mask != 0) sum += to_float(a.tokens.at(block.b, block.h, t)[d]);
    }
    block.last[d] = sum;
  }
  __syncthreads();
}

template <class T>
__global__ void __launch_bounds__(memory_threads, 4) memory_read(const MemoryArguments<T> a) {
  ATTNBENCH_SHARED(float, shared, 16);
  const MemoryLayout at(a.count, a.dim, a.plan.tile, false);
  MemoryBlock<T> block(a, at, shared);
  const MemoryPlan& plan = a.plan;
  const int k = static_cast<int>(blockIdx.y), begin = plan.reading.begin(k),
            end = plan.reading.end(k), b = block.b, h = block.h;
  if (begin >= end) return;
  block.start(k);
  const bool leaves = end == plan.reading.tokens && a.after.mean != nullptr;
  const bool gathers = a.windows && (leaves || plan.windows.end(begin) < end);
  const bool apart = leaves && a.windows && plan.each_mean;
  if (apart) sum_last_window<T>(block);
  for (int t0 = begin, n = 0; t0 < end; t0 += n) {
    n = min(plan.tile, end - t0);
    if (!plan.each_mean) n = min(n, plan.windows.end(t0) - t0);
    block.read_means(t0, n, at.rows, gathers);
    block.load(at.rows, a.query, t0, below(n));
    block.project(at.rows, at.c);
    for (int t = threadIdx.x / 32; t < n; t += memory_threads / 32) {
      weigh_row(shared + at.c + t * at.narrow, shared + at.u + t * at.narrow, a.count, a.scale);
    }
    __syncthreads();
    block.combine(at.c, at.rows);
    for (int i = threadIdx.x; i < n * a.dim; i += memory_threads) {
      const int t = i / a.dim, d = i % a.dim;
      float y = shared[at.rows + t * at.wide + d];
      if (a.averaged) {
        const bool alone = a.alone && shared[at.read + t] == 0;
        y = (alone ? 1 : 0.5F) * to_float(a.tokens.at(b, h, t0 + t)[d]) + 0.5F * y;
      }
      from_float(y, a.out.at(b, h, t0 + t)[d]);
    }
    __syncthreads();
  }
  if (leaves) block.leave(apart ? block.last : block.sum);
}

}  // namespace attnbench::kernels::cuda
