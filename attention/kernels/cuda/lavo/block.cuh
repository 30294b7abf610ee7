// One block of threads of the running memory on the CUDA cores: what it has of its head and segment
// in shared memory, and the means that a tile of queries reads.
#pragma once

#include "attention/kernels/cuda/lavo/layout.hpp"
#include "attention/kernels/cuda/lavo/past.cuh"
#include "attention/kernels/cuda/lavo/products.cuh"

namespace attnbench::kernels::cuda {

/// Bit t: whether token t of `n` is there and not hidden. For a whole warp.
__device__ inline unsigned seen_tokens(const std::uint8_t* mask, int n) {
  const unsigned all = n >= 32 ? ~0u : (1u << n) - 1;
  if (mask == nullptr) return all;
  const int lane = threadIdx.x & 31;
  return __ballot_sync(~0u, lane < n && mask[lane] != 0);
}
/// Bits below t.
__device__ inline unsigned below(int t) { return t >= 32 ? ~0u : t <= 0 ? 0u : (1u << t) - 1; }

/// Every function of it is for all threads, and behind a barrier when it returns.
template <class T>
struct MemoryBlock : MemoryPast<T> {
  using Past = MemoryPast<T>;
  using Past::a, Past::b, Past::begun, Past::begun_along, Past::h, Past::mask, Past::mean,
      Past::remember, Past::remembered, Past::sum;
  const MemoryLayout at;
  float* const shared;
  int loaded = -1;  ///< the first basis in shared memory

  __device__ MemoryBlock(const MemoryArguments<T>& arguments, const MemoryLayout& layout,
                         float* memory)
      : Past(arguments, memory + layout.past, layout.narrow, layout.wide),
        at(layout),
        shared(memory) {}

  /// Rows t0 to t0 + n - 1, each times its factor(t), to shared memory; 0 for those not in `seen`
  /// and up to a whole tile.
  template <class Factor>
  __device__ void load(int to, const Rows<const T>& from, int t0, unsigned seen,
                       const Factor& factor) const {
    const int width = at.wide - 4;
    for (int i = threadIdx.x; i < a.plan.tile * width; i += memory_threads) {
      const int t = i / width, d = i % width;
      const bool there = (seen >> t & 1) != 0 && d < a.dim;
      shared[to + t * at.wide + d] = there ? factor(t) * to_float(from.at(b, h, t0 + t)[d]) : 0;
    }
    __syncthreads();
  }
  __device__ void load(int to, const Rows<const T>& from, int t0, unsigned seen) const {
    load(to, from, t0, seen, [](int) { return 1.F; });
  }

  /// Bases j0 and those after it, as many as there is room for; 0 past the last.
  __device__ void load_bases(int j0) {
    if (loaded == j0) return;
    loaded = j0;
    const int width = at.wide - 4, count = bases_from(j0);
    for (int i = threadIdx.x; i < count * width; i += memory_threads) {
      const int j = i / width, d = i % width;
      const bool there = j0 + j < a.count && d < a.dim;
      shared[at.bases + j * at.wide + d] = there ? to_float(a.bases.at(0, h, j0 + j)[d]) : 0;
    }
    __syncthreads();
  }
  __device__ int bases_from(int j0) const {
    const int left = whole_fours(a.count - j0);
    return left < memory_chunk ? left : memory_chunk;
  }

  /// The coordinates of a tile's rows along the bases.
  __device__ void project(int rows, int to) {
    for (int j0 = 0; j0 < a.count; j0 += memory_chunk) {
      load_bases(j0);
      rows_by_rows(a.plan.tile, bases_from(j0), at.wide - 4, shared + rows, at.wide,
                   shared + at.bases, at.wide,
                   [&](int t, int j, float x) { shared[to + t * at.narrow + j0 + j] = x; });
      __syncthreads();
    }
  }
  /// The rows of which a tile has the coordinates.
  __device__ void combine(int coordinates, int to) {
    // Where bases come in several chunks the first is not the one that project() left: backwards.
    const int most = (a.count - 1) / memory_chunk * memory_chunk;
    for (int j0 = most; j0 >= 0; j0 -= memory_chunk) {
      load_bases(j0);
      rows_by_columns(a.plan.tile, at.wide - 4, bases_from(j0), shared + coordinates + j0,
                      at.narrow, shared + at.bases, at.wide, [&](int t, int d, const float(&x)[4]) {
                        float* const row = shared + to + t * at.wide + d;
#pragma unroll
                        for (int e = 0; e < 4; ++e) row[e] = j0 == most ? x[e] : row[e] + x[e];
                      });
      __syncthreads();
    }
  }

  /// The means that n queries from t0 on read, and of how many tokens they are; takes the tokens
  /// in. `room`: a tile of rows. `gathers`: whether the window begun is looked at again.
  __device__ void read_means(int t0, int n, int room, bool gathers) {
    if (a.plan.each_mean) return read_each(t0, n, room);
    for (int i = threadIdx.x; i < a.plan.tile * at.narrow; i += memory_threads) {
      shared[at.u + i] = mean[i % at.narrow];
    }
    for (int t = threadIdx.x; t < a.plan.tile; t += memory_threads) {
      shared[at.read + t] = static_cast<float>(remembered);
    }
    __syncthreads();
    if (!gathers) return;
    const unsigned seen = seen_tokens(mask(t0), n);
    for (int d = threadIdx.x; d < a.dim; d += memory_threads) {
      float total = 0;
#pragma unroll 4
      for (int t = 0; t < n; ++t) {
        if ((seen >> t & 1) != 0) total += to_float(a.tokens.at(b, h, t0 + t)[d]);
      }
      sum[d] += total;
    }
    begun += __popc(seen);
    __syncthreads();
    if (!a.plan.windows.ends(t0 + n)) return;
    remember(sum, begun);
    begun = 0;
    for (int d = threadIdx.x; d < a.dim; d += memory_threads) sum[d] = 0;
    __syncthreads();
  }

 private:
  /// Windows shorter than a tile.
  __device__ void read_each(int t0, int n, int room) {
    const unsigned seen = seen_tokens(mask(t0), n);
    load(room, a.tokens, t0, seen);
    project(room, at.u);
    const int t = static_cast<int>(threadIdx.x);
    if (t < n) {
      const int begin = a.plan.windows.begin(t0 + t) - t0;  // of this token's window
      const auto before = static_cast<float>(
          begin <= 0 ? remembered : remembered + begun + __popc(seen & below(begin)));
      const auto own = static_cast<float>((begin <= 0 ? begun : 0) +
                                          __popc(seen & below(t + 1) & ~below(begin)));
      const bool ends = a.plan.windows.ends(t0 + t + 1);
      shared[at.weight + t] = ends ? own : -1;
      shared[at.share + t] = own == 0 ? 0 : 1 / (before + own);
      shared[at.read + t] = a.inclusive ? before + own : before;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < a.count; j += memory_threads) {
      float now = mean[j], window = begun_along[j];
      float* const u = shared + at.u + j;
      for (int i = 0; i < n; ++i) {
        window += u[i * at.narrow];
        const float weight = shared[at.weight + i], before = now;
        if (weight >= 0) {
          now += (window - weight * now) * shared[at.share + i];
          window = 0;
        }
        u[i * at.narrow] = a.inclusive ? now : before;
      }
      mean[j] = now;
      begun_along[j] = window;
    }
    const int begin = a.plan.windows.begin(t0 + n) - t0;  // of the window that is left begun
    if (begin > 0) {
      remembered += begun + __popc(seen & below(begin));
      begun = 0;
    }
    begun += __popc(seen & ~below(begin));
    __syncthreads();
  }
};

}  // namespace attnbench::kernels::cuda
