// What a block of the running memory knows of the tokens before it: the mean that is read, and the
// sum of the window that is not over yet.
#pragma once

#include "attention/kernels/cuda/numbers.cuh"
#include "attention/kernels/cuda/lavo/arguments.cuh"

namespace attnbench::kernels::cuda {

/// Every function of it is for all threads, and behind a barrier when it returns.
template <class T>
struct MemoryPast {
  const MemoryArguments<T>& a;
  const int narrow, wide;  ///< room for numbers along the bases, and of rows
  /// In shared memory. [narrow]: the mean; the sum of the window begun, along the bases.
  float *const mean, *const begun_along, *const scratch;
  /// [wide]: the sum of the window begun; of one that is over.
  float *const sum, *const last;
  const int head, b, h;
  std::int64_t remembered = 0;  ///< tokens in the mean
  std::int64_t begun = 0;       ///< tokens of the window begun

  static constexpr int floats(int narrow, int wide) { return 3 * narrow + 2 * wide; }

  __device__ MemoryPast(const MemoryArguments<T>& arguments, float* memory, int along, int across)
      : a(arguments),
        narrow(along),
        wide(across),
        mean(memory),
        begun_along(mean + narrow),
        scratch(begun_along + narrow),
        sum(scratch + narrow),
        last(sum + wide),
        head(static_cast<int>(blockIdx.x)),
        b(head / a.heads),
        h(head % a.heads) {}

  __device__ const std::uint8_t* mask(int t) const {
    return a.mask == nullptr ? nullptr : a.mask + b * a.mask_stride + t;
  }

  /// The coordinates of one row.
  __device__ void project_row(const float* row, float* to) const {
    const int lane = threadIdx.x & 31;
    for (int j = threadIdx.x / 32; j < a.count; j += memory_threads / 32) {
      const T* const basis = a.bases.at(0, h, j);
      float x = 0;
      for (int d = lane; d < a.dim; d += 32) x = fmaf(to_float(basis[d]), row[d], x);
#pragma unroll
      for (int i = 16; i > 0; i /= 2) x += __shfl_xor_sync(~0u, x, i);
      if (lane == 0) to[j] = x;
    }
    __syncthreads();
  }
  /// The mean takes in `tokens` tokens whose sum is a row.
  __device__ void remember(const float* row, std::int64_t tokens) {
    if (tokens == 0) return;
    project_row(row, scratch);
    const float weight = static_cast<float>(tokens);
    const float share = 1 / static_cast<float>(remembered + tokens);
    for (int j = threadIdx.x; j < a.count; j += memory_threads) {
      mean[j] += (scratch[j] - weight * mean[j]) * share;
    }
    remembered += tokens;
    __syncthreads();
  }

  /// What was remembered before segment k, and what of its window was read before it.
  __device__ void start(int k) {
    const auto carried = [&](const float* from, int width, int i) {
      return from == nullptr ? 0.F : from[static_cast<std::int64_t>(head) * width + i];
    };
    remembered = a.before.count == nullptr ? 0 : a.before.count[b];
    begun = a.before.sum_count == nullptr ? 0 : a.before.sum_count[b];
    for (int j = threadIdx.x; j < narrow; j += memory_threads) {
      mean[j] = j < a.count ? carried(a.before.mean, a.count, j) : 0;
    }
    // What came before the unit is remembered, and the window that it cut with it.
    const MemorySegments& cut = a.plan.summing;
    const int unit = a.whole ? cut.count : cut.first_of_unit(k), end = a.whole ? unit : k;
    const auto added = [](const auto* from, int count, int stride, auto total) {
#pragma unroll 8
      for (int i = 0; i < count; ++i) total += from[static_cast<std::int64_t>(i) * stride];
      return total;
    };
    for (int d = threadIdx.x; d < a.dim; d += memory_threads) {
      const float* const sums = a.sums + static_cast<std::int64_t>(head) * cut.count * a.dim + d;
      const float past = carried(a.before.sum, a.dim, d);
      last[d] = added(sums, unit, a.dim, past);
      sum[d] = added(sums + unit * a.dim, end - unit, a.dim, unit == 0 ? past : 0);
    }
    const int* const counts = a.counts + b * cut.count;
    const std::int64_t carried_tokens = begun;
    begun = added(counts + unit, end - unit, 1, unit == 0 ? carried_tokens : 0);
    __syncthreads();
    if (unit > 0) remember(last, added(counts, unit, 1, carried_tokens));
    if (a.plan.each_mean) project_row(sum, begun_along);
  }

  /// What the past comes down to after the last token; `row`: the sum of the window begun.
  __device__ void leave(const float* row) const {
    const auto slot = static_cast<std::int64_t>(head);
    for (int j = threadIdx.x; j < a.count; j += memory_threads) {
      a.after.mean[slot * a.count + j] = mean[j];
    }
    for (int d = threadIdx.x; a.windows && d < a.dim; d += memory_threads) {
      a.after.sum[slot * a.dim + d] = row[d];
    }
    if (threadIdx.x != 0 || h != 0) return;
    a.after.count[b] = remembered;
    if (a.windows) a.after.sum_count[b] = begun;
  }
};

}  // namespace attnbench::kernels::cuda
