// One token from a carried mean: the bases are read once from memory, and nothing else is large. A
// block takes one head.
#pragma once

#include "attention/kernels/cuda/lavo/read.cuh"

namespace attnbench::kernels::cuda {

constexpr int memory_step_threads = 256;

/// Mean and sum are advanced in place; the counts, which all heads of a batch row read, to `after`.
template <class T>
__global__ void __launch_bounds__(memory_step_threads) memory_step(const MemoryArguments<T> a) {
  constexpr int warps = memory_step_threads / 32;
  __shared__ float c[most_memory_bases], u[most_memory_bases], folded[most_memory_bases];
  __shared__ float query[most_memory_dim], token[most_memory_dim], sum[most_memory_dim];
  __shared__ float partial[memory_step_threads];
  const int head = static_cast<int>(blockIdx.x), b = head / a.heads, h = head % a.heads;
  const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread / 32;
  const bool seen = a.mask == nullptr || a.mask[b * a.mask_stride] != 0;
  const bool ends = a.plan.windows.ends(1);
  std::int64_t remembered = a.before.count[b];
  std::int64_t begun = (a.windows ? a.before.sum_count[b] : 0) + (seen ? 1 : 0);
  float* const means = a.after.mean + static_cast<std::int64_t>(head) * a.count;
  float* const sums = a.windows ? a.after.sum + static_cast<std::int64_t>(head) * a.dim : nullptr;
  for (int d = thread; d < a.dim; d += memory_step_threads) {
    query[d] = to_float(a.query.at(b, h, 0)[d]);
    token[d] = to_float(a.tokens.at(b, h, 0)[d]);
    sum[d] = (a.windows ? sums[d] : 0) + (seen ? token[d] : 0);
    if (a.windows) sums[d] = ends ? 0 : sum[d];
  }
  for (int j = thread; j < a.count; j += memory_step_threads) u[j] = means[j];
  __syncthreads();
  for (int j = warp; j < a.count; j += warps) {
    const T* const basis = a.bases.at(0, h, j);
    float asked = 0, told = 0;
    for (int d = lane; d < a.dim; d += 32) {
      const float x = to_float(basis[d]);
      asked = fmaf(x, query[d], asked);
      if (ends) told = fmaf(x, sum[d], told);
    }
    asked = warp_sum(asked);
    if (ends) told = warp_sum(told);
    if (lane == 0) c[j] = asked, folded[j] = told;
  }
  __syncthreads();
  const bool empty = remembered == 0;
  if (ends) {
    const float weight = static_cast<float>(begun);
    const float share = begun == 0 ? 0 : 1 / static_cast<float>(remembered + begun);
    for (int j = thread; j < a.count; j += memory_step_threads) {
      const float mean = u[j] + (folded[j] - weight * u[j]) * share;
      means[j] = mean;
      if (a.inclusive) u[j] = mean;
    }
    remembered += begun;
    begun = 0;
    __syncthreads();
  }
  if (warp == 0) weigh_row(c, u, a.count, a.scale);
  __syncthreads();
  // Several groups of threads share the bases where there are fewer columns than threads.
  const int groups = max(1, memory_step_threads / a.dim);
  const int group = thread / a.dim, d = thread % a.dim;
  float y = 0;
  if (group < groups) {
#pragma unroll 4
    for (int j = group; j < a.count; j += groups) {
      y = fmaf(c[j], to_float(a.bases.at(0, h, j)[d]), y);
    }
  }
  partial[thread] = y;
  __syncthreads();
  if (thread < a.dim) {
    for (int g = 1; g < groups; ++g) y += partial[g * a.dim + thread];
    if (a.averaged) y = (a.alone && empty ? 1 : 0.5F) * token[thread] + 0.5F * y;
    from_float(y, a.out.at(b, h, 0)[thread]);
  }
  if (thread != 0 || h != 0) return;
  a.after.count[b] = remembered;
  if (a.windows) a.after.sum_count[b] = begun;
}

}  // namespace attnbench::kernels::cuda
