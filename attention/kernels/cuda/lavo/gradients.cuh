// Gradients through the running memory. With m what is read, u the mean, c the query's coordinates,
// a = softmax(c u), g the upstream and R what later queries make of a token's coordinates:
//   dm = B g,  de = a (dm u - a . dm u),  dc = de u,  du = dm a + de c,  dq = scale B^T dc,
//   R_s = sum_{t that reads s} du_t / n_t,  dx_s = B^T R_s,
//   dB = m g^T + scale dc q^T + R x^T.
// Queries are taken from the first segment to the last and leave du_t / n_t; tokens then go
// backwards through their segment with the sums of those behind it.
#pragma once

#include "attention/kernels/cuda/lavo/read.cuh"

namespace attnbench::kernels::cuda {

/// Of one query; a whole warp. In: c and dm; out: c is scale dc, dm is du, u is m.
__device__ inline void differentiate_row(float* c, float* dm, float* u, int count, float scale) {
  const int lane = threadIdx.x & 31;
  float top = -INFINITY;
  for (int j = lane; j < count; j += 32) top = fmaxf(top, scale * c[j] * u[j]);
  top = warp_most(top);
  float sum = 0, weighted = 0;
  for (int j = lane; j < count; j += 32) {
    const float weight = exp2f(scale * c[j] * u[j] - top);
    sum += weight;
    weighted = fmaf(weight, dm[j] * u[j], weighted);
  }
  const float by = 1 / warp_sum(sum), delta = warp_sum(weighted) * by;
  const float natural = scale * 0.69314718056F;
  for (int j = lane; j < count; j += 32) {
    const float own = u[j], asked = natural * c[j];
    const float weight = exp2f(scale * c[j] * own - top) * by;
    const float grad = weight * (dm[j] * own - delta);
    c[j] = natural * grad * own;
    dm[j] = dm[j] * weight + grad * asked;
    u[j] = weight * own;
  }
}

/// A segment's part of the bases' gradient, in global memory: to += the product of `n` rows of
/// coordinates and of numbers, of one pair of tiles or two. `first`: it is written, not added to.
template <class T>
__device__ inline void add_outer(const MemoryBlock<T>& block, float* to, int n, bool first,
                                 int left, int right, int left2 = -1, int right2 = -1) {
  const MemoryLayout& at = block.at;
  const int count = block.a.count, dim = block.a.dim, across = (at.wide - 4) / 4;
  for (int square = threadIdx.x; square < whole_fours(count) / 4 * across;
       square += memory_threads) {
    const int i = square / across * 4, j = square % across * 4;
    float sum[4][4] = {};
    columns_by_columns(sum, n, block.shared + left, at.narrow, block.shared + right, at.wide, i, j);
    if (left2 >= 0) {
      columns_by_columns(sum, n, block.shared + left2, at.narrow, block.shared + right2, at.wide, i,
                         j);
    }
#pragma unroll
    for (int p = 0; p < 4; ++p) {
#pragma unroll
      for (int q = 0; q < 4; ++q) {
        if (i + p >= count || j + q >= dim) continue;
        float& x = to[(i + p) * dim + j + q];
        x = first ? sum[p][q] : x + sum[p][q];
      }
    }
  }
  __syncthreads();
}

/// Of an empty segment.
template <class T>
__device__ inline void clear_part(const MemoryArguments<T>& a, float* to) {
  for (int i = threadIdx.x; i < a.count * a.dim; i += memory_threads) to[i] = 0;
}

template <class T>
__global__ void __launch_bounds__(memory_threads, 4)
    memory_query_gradients(const MemoryArguments<T> a, const MemoryGradientArguments<T> g) {
  ATTNBENCH_SHARED(float, shared, 16);
  const MemoryLayout at(a.count, a.dim, a.plan.tile, true);
  MemoryBlock<T> block(a, at, shared);
  const MemoryPlan& plan = a.plan;
  const int k = static_cast<int>(blockIdx.y), b = block.b, h = block.h;
  const int begin = plan.reading.begin(k), end = plan.reading.end(k);
  const std::int64_t place = static_cast<std::int64_t>(block.head) * plan.reading.count + k;
  float* const part = g.of_reading + place * a.count * a.dim;
  float* const grads =
      g.grads + static_cast<std::int64_t>(block.head) * plan.reading.tokens * a.count;
  const int own = static_cast<int>(threadIdx.x);  // a thread's own coordinates, and one more
  float grad_sums[most_memory_bases / memory_threads] = {};
  if (begin < end) block.start(k);
  const bool gathers = a.windows && plan.windows.end(begin) < end;
  for (int t0 = begin, n = 0; t0 < end; t0 += n) {
    n = min(plan.tile, end - t0);
    if (!plan.each_mean) n = min(n, plan.windows.end(t0) - t0);
    block.read_means(t0, n, at.more, gathers);
    block.load(at.rows, a.query, t0, below(n));
    block.project(at.rows, at.c);
    const bool alone = a.alone;
    block.load(at.more, g.d_out, t0, below(n), [&](int t) {
      return alone && shared[at.read + t] == 0 ? 0.F : a.averaged ? 0.5F : 1.F;
    });
    block.project(at.more, at.grad);
    for (int t = threadIdx.x / 32; t < n; t += memory_threads / 32) {
      const int row = t * at.narrow;
      differentiate_row(shared + at.c + row, shared + at.grad + row, shared + at.u + row, a.count,
                        a.scale);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < most_memory_bases / memory_threads; ++i) {
      const int j = own + i * memory_threads;
      for (int t = 0; j < a.count && t < n; ++t) {
        const float tokens = shared[at.read + t];
        const float x = tokens == 0 ? 0 : shared[at.grad + t * at.narrow + j] / tokens;
        grads[static_cast<std::int64_t>(t0 + t) * a.count + j] = x;
        grad_sums[i] += x;
      }
    }
    if (h == 0 && own < n) {
      g.read[static_cast<std::int64_t>(b) * plan.reading.tokens + t0 + own] =
          static_cast<int>(shared[at.read + own]);
    }
    add_outer(block, part, n, t0 == begin, at.u, at.more, at.c, at.rows);
    block.combine(at.c, at.more);
    for (int i = threadIdx.x; i < n * a.dim; i += memory_threads) {
      const int t = i / a.dim, d = i % a.dim;
      from_float(shared[at.more + t * at.wide + d], g.d_query.at(b, h, t0 + t)[d]);
    }
    __syncthreads();
  }
  if (begin >= end) clear_part(a, part);
#pragma unroll
  for (int i = 0; i < most_memory_bases / memory_threads; ++i) {
    const int j = own + i * memory_threads;
    if (j < a.count) g.grad_sums[place * a.count + j] = grad_sums[i];
  }
}

template <class T>
__global__ void __launch_bounds__(memory_threads, 4)
    memory_token_gradients(const MemoryArguments<T> a, const MemoryGradientArguments<T> g) {
  ATTNBENCH_SHARED(float, shared, 16);
  const MemoryLayout at(a.count, a.dim, a.plan.tile, false);
  MemoryBlock<T> block(a, at, shared);
  const MemoryPlan& plan = a.plan;
  const MemorySegments& cut = plan.summing;
  const int k = static_cast<int>(blockIdx.y), b = block.b, h = block.h;
  const int begin = cut.begin(k), end = cut.end(k), length = plan.reading.tokens;
  float* const part =
      g.of_tokens + (static_cast<std::int64_t>(block.head) * cut.count + k) * a.count * a.dim;
  if (begin >= end) return clear_part(a, part);
  const float* const grads = g.grads + static_cast<std::int64_t>(block.head) * length * a.count;
  // Of what reads this segment: `later` windows, and `inside` what will be one of them.
  float* const later = block.mean;
  float* const inside = block.begun_along;
  const int first = a.whole ? 0 : cut.first_of_unit(k) + cut.parts;
  for (int j = threadIdx.x; j < whole_fours(a.count); j += memory_threads) {
    const float* from =
        g.grad_sums + static_cast<std::int64_t>(block.head) * plan.reading.count * a.count + j;
    float sum = 0;
#pragma unroll 4
    for (int i = plan.reading.count - 1; j < a.count && i >= first; --i) sum += from[i * a.count];
    later[j] = sum;
    inside[j] = 0;
  }
  __syncthreads();
  const int last = begin + (end - begin - 1) / plan.tile * plan.tile;
  for (int t0 = last; t0 >= begin; t0 -= plan.tile) {
    const int n = min(plan.tile, end - t0);
    const unsigned seen = seen_tokens(block.mask(t0), n);
    block.load(at.rows, a.tokens, t0, seen);
    const int width = whole_fours(a.count);
    for (int i = threadIdx.x; i < n * width; i += memory_threads) {
      const int t = i / width, j = i % width;
      const bool there = !a.whole && j < a.count;
      shared[at.c + t * at.narrow + j] =
          there ? grads[static_cast<std::int64_t>(t0 + t) * a.count + j] : 0;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < width; j += memory_threads) {
      float behind = later[j], window = inside[j];
#pragma unroll 1
      for (int t = n - 1; t >= 0; --t) {
        float& x = shared[at.c + t * at.narrow + j];
        if (plan.windows.ends(t0 + t + 1)) behind += window, window = 0;
        if (a.inclusive) {
          behind += x;
        } else {
          window += x;
        }
        x = (seen >> t & 1) != 0 ? behind : 0;
      }
      later[j] = behind;
      inside[j] = window;
    }
    __syncthreads();
    add_outer(block, part, n, t0 == last, at.c, at.rows);
    block.combine(at.c, at.rows);
    for (int i = threadIdx.x; i < n * a.dim; i += memory_threads) {
      const int t = i / a.dim, d = i % a.dim;
      float y = (seen >> t & 1) != 0 ? shared[at.rows + t * at.wide + d] : 0;
      if (a.averaged) {
        const bool alone = a.alone && g.read[static_cast<std::int64_t>(b) * length + t0 + t] == 0;
        y += (alone ? 1 : 0.5F) * to_float(g.d_out.at(b, h, t0 + t)[d]);
      }
      from_float(y, g.d_tokens.at(b, h, t0 + t)[d]);
    }
    __syncthreads();
  }
}

constexpr int memory_add_threads = 128;

/// The bases' gradient: the parts of all batch rows and segments, in order. A thread a number.
template <class T>
__global__ void __launch_bounds__(memory_add_threads)
    memory_bases_gradient(const MemoryArguments<T> a, const MemoryGradientArguments<T> g, float* to,
                          int batch) {
  const std::int64_t each = std::int64_t{a.count} * a.dim;
  const std::int64_t i = std::int64_t{blockIdx.x} * memory_add_threads + threadIdx.x;
  if (i >= each * a.heads) return;
  const std::int64_t h = i / each, number = i % each;
  float sum = 0;
  for (int b = 0; b < batch; ++b) {
    const std::int64_t head = b * a.heads + h;
    const auto add = [&](const float* parts, int count) {
      const float* const from = parts + head * count * each + number;
#pragma unroll 8
      for (int k = 0; k < count; ++k) sum += from[k * each];
    };
    add(g.of_reading, a.plan.reading.count);
    add(g.of_tokens, a.plan.summing.count);
  }
  to[i] = sum;
}

}  // namespace attnbench::kernels::cuda
