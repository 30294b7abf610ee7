// With B the bases, x tokens, q queries, n_t the tokens that query t reads and g the upstream:
//   c = B q,   k = B x,   u = the mean of k over what is read,   a = softmax(scale c u),
//   m = a u,   y = B^T m;   dm = B g,   de = a (dm u - a . dm u),   du = dm a + de c,
//   dq = scale B^T (de u),   R_s = sum_{t that reads s} du_t / n_t,   dx_s = B^T R_s,
//   dB = m g^T + scale (de u) q^T + R x^T.
// A pass is a row of launches over arrays of coordinates, [slots, tokens, bases] in fp32: products
// with the bases, a walk through the tokens for u or for R, and what belongs to one query alone. A
// step from a carried mean is one kernel.
#include "attention/kernels/cuda/lavo/lavo.hpp"

#include <algorithm>
#include <stdexcept>

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/numbers.cuh"
#include "attention/kernels/cuda/tile.cuh"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels::cuda {
namespace {

constexpr int most_bases = 256, most_dim = 256;

/// Where windows of tokens end: behind the first `first`, and behind every `every` more. Tokens are
/// remembered when their window has ended; a mean for each token is windows of one.
struct MemoryWindows {
  int first = 1, every = 1;

  __device__ bool ends(int before) const {
    return before >= first && (before - first) % every == 0;
  }
};

MemoryWindows windows_of(const LavoSizes& sizes) {
  constexpr int never = 1 << 30;
  if (sizes.order == MemoryOrder::all) return {never, never};
  if (sizes.order == MemoryOrder::each_token) return {1, 1};
  const std::int64_t most = sizes.length + 1;  // past the last token an end is as good as another
  return {static_cast<int>(std::min(most, sizes.window - sizes.phase % sizes.window)),
          static_cast<int>(std::min(most, sizes.window))};
}

template <class T>
struct MemoryArguments {
  Rows<const T> query, tokens, bases, d_out;
  const std::uint8_t* mask = nullptr;
  std::int64_t mask_stride = 0;
  int heads = 1;  ///< of a batch row
  int length = 0, memory_length = 0, count = 0, dim = 0;
  bool windows_read = false;  ///< MemoryOrder::windows
  bool inclusive = false;     ///< MemoryOrder::each_token: a token is read by its own query
  bool whole = false;         ///< MemoryOrder::all
  bool averaged = false, alone = false;
  float scale = 1;  ///< log2(e) included
  MemoryWindows windows;
  MemoryCarry<float> carry;
  /// [slots, length, count]: c, then m or, backward, scale de u. [slots, memory_length, count]: k.
  float *asked = nullptr, *told = nullptr;
  /// [slots, length, count]: u, in the place of k; of `whole` [slots, 1, count].
  float* mean = nullptr;
  int* read = nullptr;  ///< n [batch, length]; of `whole` [batch, 1]
  /// Backward: dm, then du [slots, length, count]; m; R [slots, memory_length, count].
  float *grad = nullptr, *mixed = nullptr, *later = nullptr;

  __device__ bool seen(std::int64_t b, std::int64_t t) const {
    return mask == nullptr || mask[b * mask_stride + t] != 0;
  }
  /// Where `mean` or `read` of a query lie, in rows.
  __device__ std::int64_t row(std::int64_t slot, std::int64_t t) const {
    return whole ? slot : slot * length + t;
  }
  __device__ bool reads_nothing(std::int64_t b, std::int64_t t) const {
    return read[row(b, t)] == 0;
  }
  /// What y has of m, and dm of g.
  __device__ float share(std::int64_t b, std::int64_t t) const {
    return alone && reads_nothing(b, t) ? 0.F : averaged ? 0.5F : 1.F;
  }
  /// What y has of its own token, where it is averaged.
  __device__ float own_share(std::int64_t b, std::int64_t t) const {
    return alone && reads_nothing(b, t) ? 1.F : 0.5F;
  }
};

__device__ inline float warp_most(float x) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) x = fmaxf(x, __shfl_xor_sync(~0u, x, i));
  return x;
}
__device__ inline float warp_total(float x) {
#pragma unroll
  for (int i = 16; i > 0; i /= 2) x += __shfl_xor_sync(~0u, x, i);
  return x;
}

// ---- products: out(i, j) = sum over k of left(i, k) right(k, j), a block 64 x 64 of them ----
// A problem has these three, their sizes, and which neighbours lie side by side in memory.

/// Coordinates of rows along the bases: c, k and dm.
template <class T>
struct Coordinates {
  MemoryArguments<T> a;
  Rows<const T> from;
  bool hides = false;   ///< hidden tokens count as 0
  bool shares = false;  ///< rows are multiplied by their share
  int rows = 0, columns = 0, depth = 0;
  float* to = nullptr;
  static constexpr bool left_along_k = true, right_along_k = true;

  __device__ float left(std::int64_t slot, int t, int d) const {
    const std::int64_t b = slot / a.heads, h = slot % a.heads;
    if (hides && !a.seen(b, t)) return 0;
    return to_float(from.at(b, h, t)[d]) * (shares ? a.share(b, t) : 1.F);
  }
  __device__ float right(std::int64_t slot, int d, int j) const {
    return to_float(a.bases.at(0, slot % a.heads, j)[d]);
  }
  __device__ void put(std::int64_t slot, int t, int j, float x) const {
    to[(slot * rows + t) * columns + j] = x;
  }
};

/// Rows from their coordinates: y, dq and dx.
template <class T>
struct Combined {
  MemoryArguments<T> a;
  const float* from;
  Rows<T> to;
  Rows<const T> own{};  ///< what is mixed in by its share where results are averaged, or null
  float by = 1;         ///< on what is not its own
  int rows = 0, columns = 0, depth = 0;
  static constexpr bool left_along_k = true, right_along_k = false;

  __device__ float left(std::int64_t slot, int t, int j) const {
    return from[(slot * rows + t) * depth + j];
  }
  __device__ float right(std::int64_t slot, int j, int d) const {
    return to_float(a.bases.at(0, slot % a.heads, j)[d]);
  }
  __device__ void put(std::int64_t slot, int t, int d, float x) const {
    const std::int64_t b = slot / a.heads, h = slot % a.heads;
    x *= by;
    if (own.data != nullptr) x += a.own_share(b, t) * to_float(own.at(b, h, t)[d]);
    from_float(x, to.at(b, h, t)[d]);
  }
};

/// The bases' gradient of a part of the tokens: m g^T of all queries, behind it (scale de u) q^T,
/// behind it R x^T of all tokens. A slot here is `parts` of a head.
template <class T>
struct BasesGradient {
  MemoryArguments<T> a;
  int parts = 1, part = 0;  ///< tokens of a part
  int rows = 0, columns = 0, depth = 0;
  float* to = nullptr;  ///< [slots, parts, count, dim]
  static constexpr bool left_along_k = false, right_along_k = false;

  __device__ int tokens() const { return 2 * a.length + a.memory_length; }
  __device__ float left(std::int64_t slot, int j, int k) const {
    const std::int64_t head = slot / parts;
    const int t = static_cast<int>(slot % parts) * part + k;
    if (t >= tokens()) return 0;
    if (t < a.length) return a.mixed[(head * a.length + t) * a.count + j];
    if (t < 2 * a.length) return a.asked[(head * a.length + t - a.length) * a.count + j];
    return a.later[(head * a.memory_length + t - 2 * a.length) * a.count + j];
  }
  __device__ float right(std::int64_t slot, int k, int d) const {
    const std::int64_t head = slot / parts, b = head / a.heads, h = head % a.heads;
    const int t = static_cast<int>(slot % parts) * part + k;
    if (t >= tokens()) return 0;
    if (t < a.length) return a.share(b, t) * to_float(a.d_out.at(b, h, t)[d]);
    if (t < 2 * a.length) return to_float(a.query.at(b, h, t - a.length)[d]);
    const int s = t - 2 * a.length;
    return a.seen(b, s) ? to_float(a.tokens.at(b, h, s)[d]) : 0.F;
  }
  __device__ void put(std::int64_t slot, int j, int d, float x) const {
    to[(slot * a.count + j) * a.dim + d] = x;
  }
};

constexpr int product_threads = 128, product_tile = 64;

/// Passes left(i, k) and right(k, j) for the k from k0 on, 0 past the last, to put_left(i, k, x)
/// and put_right(j, k, x). Threads go along what lies side by side.
template <class Problem, class PutLeft, class PutRight>
__device__ inline void load_product(const Problem& p, std::int64_t slot, int i0, int j0, int k0,
                                    const PutLeft& put_left, const PutRight& put_right) {
#pragma unroll 8
  for (int at = threadIdx.x; at < product_tile * product_tile; at += product_threads) {
    const int fast = at % product_tile, slow = at / product_tile;
    const int i = Problem::left_along_k ? slow : fast, k = Problem::left_along_k ? fast : slow;
    const bool there = i0 + i < p.rows && k0 + k < p.depth;
    put_left(i, k, there ? p.left(slot, i0 + i, k0 + k) : 0.F);
  }
#pragma unroll 8
  for (int at = threadIdx.x; at < product_tile * product_tile; at += product_threads) {
    const int fast = at % product_tile, slow = at / product_tile;
    const int j = Problem::right_along_k ? slow : fast, k = Problem::right_along_k ? fast : slow;
    const bool there = j0 + j < p.columns && k0 + k < p.depth;
    put_right(j, k, there ? p.right(slot, k0 + k, j0 + j) : 0.F);
  }
}

/// In fp32 on the CUDA cores: 8 x 4 results a thread. Grid [slots * tiles of rows, tiles of
/// columns].
template <class Problem>
__global__ void __launch_bounds__(product_threads) product_plain(const Problem p) {
  __shared__ float left[product_tile][product_tile + 1], right[product_tile][product_tile + 1];
  const int tiles = (p.rows + product_tile - 1) / product_tile;
  const std::int64_t slot = blockIdx.x / tiles;
  const int i0 = static_cast<int>(blockIdx.x) % tiles * product_tile;
  const int j0 = static_cast<int>(blockIdx.y) * product_tile;
  const int row = static_cast<int>(threadIdx.x) / 16, column = static_cast<int>(threadIdx.x) % 16;
  float sum[8][4] = {};
  for (int k0 = 0; k0 < p.depth; k0 += product_tile) {
    __syncthreads();
    load_product(
        p, slot, i0, j0, k0, [&](int i, int k, float x) { left[i][k] = x; },
        [&](int j, int k, float x) { right[j][k] = x; });
    __syncthreads();
    const int some = min(product_tile, p.depth - k0);
#pragma unroll 2
    for (int k = 0; k < some; ++k) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          sum[i][j] = fmaf(left[row + 8 * i][k], right[column + 16 * j][k], sum[i][j]);
        }
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 8; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int to_row = i0 + row + 8 * i, to_column = j0 + column + 16 * j;
      if (to_row < p.rows && to_column < p.columns) p.put(slot, to_row, to_column, sum[i][j]);
    }
  }
}

/// On the tensor cores, of numbers in two parts (tile.cuh): 16 rows a warp. The same grid.
template <class Problem>
__global__ void __launch_bounds__(product_threads) product_tensor(const Problem p) {
  ATTNBENCH_SHARED(unsigned char, memory, 128);
  using Operands = Tile<product_tile>;
  const Operands left{memory}, right{memory + Operands::bytes};
  const Fragments<product_tile> lefts(left), rights(right);
  const int tiles = (p.rows + product_tile - 1) / product_tile;
  const std::int64_t slot = blockIdx.x / tiles;
  const int i0 = static_cast<int>(blockIdx.x) % tiles * product_tile;
  const int j0 = static_cast<int>(blockIdx.y) * product_tile;
  const int lane = threadIdx.x & 31, warp = static_cast<int>(threadIdx.x >> 5);
  float sum[8][4] = {};
  for (int k0 = 0; k0 < p.depth; k0 += product_tile) {
    __syncthreads();
    load_product(
        p, slot, i0, j0, k0, [&](int i, int k, float x) { left.put(i, k, x); },
        [&](int j, int k, float x) { right.put(j, k, x); });
    __syncthreads();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const Operand x = lefts.left(16 * warp, 16 * k);
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        multiply_add(sum[2 * n], sum[2 * n + 1], x, rights.right(16 * n, 16 * k));
      }
    }
  }
#pragma unroll
  for (int n = 0; n < 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = i0 + 16 * warp + (lane >> 2) + (i >> 1) * 8;
      const int column = j0 + 8 * n + 2 * (lane & 3) + (i & 1);
      if (row < p.rows && column < p.columns) p.put(slot, row, column, sum[n][i]);
    }
  }
}

// ---- walks through the tokens: a thread a basis of a head ----

constexpr int walk_threads = 64, ahead = 8;

/// u of every query in the place of k, and n; the carried mean is continued from and advanced.
template <class T>
__global__ void __launch_bounds__(walk_threads) memory_means(const MemoryArguments<T> a) {
  const std::int64_t slot = blockIdx.x, b = slot / a.heads, h = slot % a.heads;
  const int j = static_cast<int>(blockIdx.y * walk_threads + threadIdx.x);
  if (j >= a.count) return;
  const bool counts = j == 0 && h == 0;
  const bool carried = a.carry.mean != nullptr;
  float mean = carried ? a.carry.mean[slot * a.count + j] : 0.F;
  std::int64_t remembered = carried ? a.carry.count[b] : 0, begun = 0;
  float window = 0;
  if (carried && a.windows_read) {
    begun = a.carry.sum_count[b];
    const T* const basis = a.bases.at(0, h, j);
    for (int d = 0; d < a.dim; ++d) window += to_float(basis[d]) * a.carry.sum[slot * a.dim + d];
  }
  const auto remember = [&] {
    if (begun > 0) {
      remembered += begun;
      mean += (window - static_cast<float>(begun) * mean) / static_cast<float>(remembered);
    }
    begun = 0;
    window = 0;
  };
  const auto leave = [&](int t) {
    a.mean[a.row(slot, t) * a.count + j] = mean;
    if (counts) a.read[a.row(b, t)] = static_cast<int>(remembered);
  };
  const float* const told = a.told + slot * a.memory_length * a.count + j;
  for (int t0 = 0; t0 < a.memory_length; t0 += ahead) {
    float k[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      if (t0 + i < a.memory_length) k[i] = told[static_cast<std::int64_t>(t0 + i) * a.count];
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int t = t0 + i;
      if (t >= a.memory_length) continue;
      if (a.windows_read) leave(t);
      begun += a.seen(b, t) ? 1 : 0;
      window += k[i];
      if (a.windows.ends(t + 1)) remember();
      if (a.inclusive) leave(t);
    }
  }
  if (a.whole) {
    remember();
    leave(0);
  }
  if (carried) a.carry.mean[slot * a.count + j] = mean;
}

/// R of every token, from du.
template <class T>
__global__ void __launch_bounds__(walk_threads) memory_later(const MemoryArguments<T> a) {
  const std::int64_t slot = blockIdx.x, b = slot / a.heads;
  const int j = static_cast<int>(blockIdx.y * walk_threads + threadIdx.x);
  if (j >= a.count) return;
  const float* const grad = a.grad + slot * a.length * a.count + j;
  float* const later = a.later + slot * a.memory_length * a.count + j;
  const auto of_query = [&](int t) {
    const int read = a.read[a.row(b, t)];
    return read == 0 ? 0.F
                     : grad[static_cast<std::int64_t>(t) * a.count] / static_cast<float>(read);
  };
  const auto leave = [&](int t, float x) {
    later[static_cast<std::int64_t>(t) * a.count] = a.seen(b, t) ? x : 0.F;
  };
  float behind = 0, window = 0;  // of later windows, and of what will be one of them
  if (a.whole) {
#pragma unroll 8
    for (int t = 0; t < a.length; ++t) behind += of_query(t);
    for (int t = 0; t < a.memory_length; ++t) leave(t, behind);
    return;
  }
  for (int t0 = a.length - 1; t0 >= 0; t0 -= ahead) {
    float x[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) x[i] = t0 - i >= 0 ? of_query(t0 - i) : 0.F;
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const int t = t0 - i;
      if (t < 0) continue;
      if (a.windows.ends(t + 1)) {
        behind += window;
        window = 0;
      }
      (a.inclusive ? behind : window) += x[i];
      leave(t, behind);
    }
  }
}

// ---- what belongs to one query: a warp each ----

constexpr int query_threads = 256;

/// Grid [queries of all slots / 8]. Forward c becomes m. Backward c becomes scale de u, dm becomes
/// du, and m goes to `mixed`, which may be where u is.
template <class T, bool Backward>
__global__ void __launch_bounds__(query_threads)
    memory_queries(const MemoryArguments<T> a, std::int64_t queries) {
  const std::int64_t query = std::int64_t{blockIdx.x} * (query_threads / 32) + threadIdx.x / 32;
  if (query >= queries) return;
  const int lane = threadIdx.x & 31;
  float* const c = a.asked + query * a.count;
  const float* const u = a.mean + a.row(query / a.length, query % a.length) * a.count;
  float top = -INFINITY;
  for (int j = lane; j < a.count; j += 32) top = fmaxf(top, a.scale * c[j] * u[j]);
  top = warp_most(top);
  float sum = 0, weighted = 0;
  for (int j = lane; j < a.count; j += 32) {
    const float weight = exp2f(a.scale * c[j] * u[j] - top);
    sum += weight;
    if (Backward) weighted = fmaf(weight, a.grad[query * a.count + j] * u[j], weighted);
  }
  const float by = 1 / warp_total(sum);
  if constexpr (!Backward) {
    for (int j = lane; j < a.count; j += 32) {
      c[j] = exp2f(a.scale * c[j] * u[j] - top) * by * u[j];
    }
    return;
  }
  const float delta = warp_total(weighted) * by;
  const float natural = a.scale * 0.69314718056F;
  for (int j = lane; j < a.count; j += 32) {
    const std::int64_t at = query * a.count + j;
    const float own = u[j], asked = natural * c[j], dm = a.grad[at];
    const float weight = exp2f(a.scale * c[j] * own - top) * by;
    const float grad = weight * (dm * own - delta);
    c[j] = natural * grad * own;
    a.grad[at] = dm * weight + grad * asked;
    a.mixed[at] = weight * own;
  }
}

/// The bases' gradient: the parts of all batch rows, in order. A thread a number.
__global__ void __launch_bounds__(query_threads)
    sum_parts(const float* from, float* to, std::int64_t numbers, std::int64_t heads,
              std::int64_t batch, int parts) {
  const std::int64_t i = std::int64_t{blockIdx.x} * query_threads + threadIdx.x;
  if (i >= heads * numbers) return;
  const std::int64_t h = i / numbers, number = i % numbers;
  float sum = 0;
  for (std::int64_t b = 0; b < batch; ++b) {
#pragma unroll 8
    for (int k = 0; k < parts; ++k) {
      sum += from[((b * heads + h) * parts + k) * numbers + number];
    }
  }
  to[i] = sum;
}

// ---- the carry ----

/// The sum of the window that a call leaves begun. A thread a number of a head; before results,
/// which may be written over tokens, and after the means.
template <class T>
__global__ void __launch_bounds__(query_threads) memory_window(const MemoryArguments<T> a) {
  const std::int64_t slot = blockIdx.x, b = slot / a.heads, h = slot % a.heads;
  const int d = static_cast<int>(threadIdx.x);
  if (d >= a.dim) return;
  const bool goes_on = a.length < a.windows.first;
  const int past = a.length - a.windows.first;
  float sum = goes_on ? a.carry.sum[slot * a.dim + d] : 0.F;
#pragma unroll 8
  for (int t = goes_on ? 0 : a.length - past % a.windows.every; t < a.length; ++t) {
    if (a.seen(b, t)) sum += to_float(a.tokens.at(b, h, t)[d]);
  }
  a.carry.sum[slot * a.dim + d] = sum;
}

/// The tokens remembered, and of the window begun: last, since all else reads them. A thread a
/// batch row.
template <class T>
__global__ void __launch_bounds__(32) memory_counts(const MemoryArguments<T> a, int batch) {
  const int b = static_cast<int>(blockIdx.x * 32 + threadIdx.x);
  if (b >= batch) return;
  std::int64_t remembered = a.carry.count[b], begun = a.windows_read ? a.carry.sum_count[b] : 0;
#pragma unroll 8
  for (int t = 0; t < a.length; ++t) {
    begun += a.seen(b, t) ? 1 : 0;
    if (!a.windows.ends(t + 1)) continue;
    remembered += begun;
    begun = 0;
  }
  a.carry.count[b] = remembered;
  if (a.windows_read) a.carry.sum_count[b] = begun;
}

// ---- a step: one token from a carried mean, a block a head; the bases are what is large ----

template <class T>
__global__ void __launch_bounds__(query_threads)
    memory_step(const MemoryArguments<T> a, const Rows<T> out) {
  constexpr int warps = query_threads / 32;
  __shared__ float c[most_bases], u[most_bases], folded[most_bases];
  __shared__ float query[most_dim], token[most_dim], sum[most_dim];
  __shared__ float partial[query_threads];
  const std::int64_t slot = blockIdx.x, b = slot / a.heads, h = slot % a.heads;
  const int thread = static_cast<int>(threadIdx.x), lane = thread & 31, warp = thread / 32;
  const bool seen = a.seen(b, 0), ends = a.windows.ends(1);
  const std::int64_t remembered = a.carry.count[b];
  const std::int64_t begun = (a.windows_read ? a.carry.sum_count[b] : 0) + (seen ? 1 : 0);
  float* const means = a.carry.mean + slot * a.count;
  float* const sums = a.windows_read ? a.carry.sum + slot * a.dim : nullptr;
  for (int d = thread; d < a.dim; d += query_threads) {
    query[d] = to_float(a.query.at(b, h, 0)[d]);
    token[d] = to_float(a.tokens.at(b, h, 0)[d]);
    sum[d] = (a.windows_read ? sums[d] : 0) + (seen ? token[d] : 0);
    if (a.windows_read) sums[d] = ends ? 0 : sum[d];
  }
  for (int j = thread; j < a.count; j += query_threads) u[j] = means[j];
  __syncthreads();
  for (int j = warp; j < a.count; j += warps) {
    const T* const basis = a.bases.at(0, h, j);
    float asked = 0, told = 0;
    for (int d = lane; d < a.dim; d += 32) {
      const float x = to_float(basis[d]);
      asked = fmaf(x, query[d], asked);
      if (ends) told = fmaf(x, sum[d], told);
    }
    asked = warp_total(asked);
    told = warp_total(told);
    if (lane == 0) c[j] = asked, folded[j] = told;
  }
  __syncthreads();
  for (int j = thread; ends && begun > 0 && j < a.count; j += query_threads) {
    const float weight = static_cast<float>(begun);
    const float mean = u[j] + (folded[j] - weight * u[j]) / static_cast<float>(remembered + begun);
    means[j] = mean;
    if (a.inclusive) u[j] = mean;
  }
  __syncthreads();
  if (warp == 0) {  // m in the place of c
    float top = -INFINITY, total = 0;
    for (int j = lane; j < a.count; j += 32) top = fmaxf(top, a.scale * c[j] * u[j]);
    top = warp_most(top);
    for (int j = lane; j < a.count; j += 32) {
      const float weight = exp2f(a.scale * c[j] * u[j] - top);
      total += weight;
      c[j] = weight * u[j];
    }
    const float by = 1 / warp_total(total);
    for (int j = lane; j < a.count; j += 32) c[j] *= by;
  }
  __syncthreads();
  // Several groups of threads share the bases where there are fewer columns than threads.
  const int groups = query_threads / a.dim, group = thread / a.dim, d = thread % a.dim;
  float y = 0;
#pragma unroll 4
  for (int j = group; group < groups && j < a.count; j += groups) {
    y = fmaf(c[j], to_float(a.bases.at(0, h, j)[d]), y);
  }
  partial[thread] = y;
  __syncthreads();
  if (thread >= a.dim) return;
  for (int g = 1; g < groups; ++g) y += partial[g * a.dim + thread];
  if (a.averaged) {
    y = (a.alone && remembered == 0 ? 1 : 0.5F) * token[thread] + 0.5F * y;
  }
  from_float(y, out.at(b, h, 0)[thread]);
}

// ---- launch ----

void require_supported(const LavoSizes& sizes) {
  const std::string why = lavo_refusal(sizes);
  if (!why.empty()) throw std::logic_error("running memory on CUDA: " + why);
}

/// How the bases' gradient is cut.
struct GradientParts {
  static constexpr int part = 1024;  ///< tokens
  int count;
  explicit GradientParts(const LavoSizes& sizes)
      : count(static_cast<int>((2 * sizes.length + sizes.memory_length + part - 1) / part)) {}
};

template <class T>
MemoryArguments<T> arguments_of(const LavoSizes& sizes, const LavoArguments<T>& given) {
  MemoryArguments<T> a;
  a.windows = windows_of(sizes);
  a.query = given.query;
  a.tokens = given.tokens;
  a.bases = given.bases;
  a.mask = given.key_mask;
  a.mask_stride = given.mask_stride;
  a.heads = static_cast<int>(sizes.heads);
  a.length = static_cast<int>(sizes.length);
  a.memory_length = static_cast<int>(sizes.memory_length);
  a.count = static_cast<int>(sizes.bases);
  a.dim = static_cast<int>(sizes.head_dim);
  a.windows_read = sizes.order == MemoryOrder::windows;
  a.inclusive = sizes.order == MemoryOrder::each_token;
  a.whole = sizes.order == MemoryOrder::all;
  a.averaged = sizes.averaged;
  a.alone = sizes.alone && a.windows_read;
  a.scale = static_cast<float>(sizes.scale * 1.4426950408889634);
  return a;
}

/// The arrays that the arguments point to; returns the parts of the bases' gradient.
template <class T>
float* lend(Workspace& space, const LavoSizes& sizes, bool backward, MemoryArguments<T>& a) {
  const std::int64_t slots = sizes.batch * sizes.heads, row = slots * sizes.bases;
  const bool whole = sizes.order == MemoryOrder::all;
  a.asked = space.take<float>(row * sizes.length);
  a.told = space.take<float>(row * sizes.memory_length);
  a.mean = whole ? space.take<float>(row) : a.told;
  a.read = space.take<int>(sizes.batch * (whole ? 1 : sizes.length));
  if (!backward) return nullptr;
  a.grad = space.take<float>(row * sizes.length);
  float* const more = space.take<float>(row * std::max(sizes.length, sizes.memory_length));
  a.mixed = whole ? more : a.mean;
  a.later = whole ? a.told : more;
  return space.take<float>(row * sizes.head_dim * GradientParts(sizes).count);
}

template <class T, class Problem>
void launch_product(Problem p, int rows, int columns, int depth, std::int64_t slots,
                    Stream stream) {
  p.rows = rows;
  p.columns = columns;
  p.depth = depth;
  const auto tiles = [](int n) { return (n + product_tile - 1) / product_tile; };
  const dim3 grid(static_cast<unsigned>(slots * tiles(rows)),
                  static_cast<unsigned>(tiles(columns)));
  if (grid.x == 0) return;
  if constexpr (std::is_same_v<T, float>) {
    launch(product_plain<Problem>, grid, dim3(product_threads), 0, stream, p);
  } else {
    launch(product_tensor<Problem>, grid, dim3(product_threads), 2 * Tile<product_tile>::bytes,
           stream, p);
  }
}

template <class T>
void launch_coordinates(const MemoryArguments<T>& a, const Rows<const T>& from, int tokens,
                        bool hides, bool shares, float* to, std::int64_t slots, Stream stream) {
  Coordinates<T> p{.a = a, .from = from, .hides = hides, .shares = shares, .to = to};
  launch_product<T>(p, tokens, a.count, a.dim, slots, stream);
}

template <class T>
void launch_combined(const MemoryArguments<T>& a, const float* from, int tokens, const Rows<T>& to,
                     const Rows<const T>& own, float by, std::int64_t slots, Stream stream) {
  Combined<T> p{.a = a, .from = from, .to = to, .own = own, .by = by};
  launch_product<T>(p, tokens, a.dim, a.count, slots, stream);
}

/// c, and u in the place of k.
template <class T>
void launch_means(const MemoryArguments<T>& a, std::int64_t slots, Stream stream) {
  launch_coordinates(a, a.query, a.length, false, false, a.asked, slots, stream);
  launch_coordinates(a, a.tokens, a.memory_length, true, false, a.told, slots, stream);
  launch(memory_means<T>,
         dim3(static_cast<unsigned>(slots),
              static_cast<unsigned>((a.count + walk_threads - 1) / walk_threads)),
         dim3(walk_threads), 0, stream, a);
}

template <class T, bool Backward>
void launch_queries(const MemoryArguments<T>& a, std::int64_t slots, Stream stream) {
  const std::int64_t queries = slots * a.length, each = query_threads / 32;
  if (queries == 0) return;
  launch(memory_queries<T, Backward>, dim3(static_cast<unsigned>((queries + each - 1) / each)),
         dim3(query_threads), 0, stream, a, queries);
}

bool nothing_to_read(const LavoSizes& sizes) {
  return sizes.batch == 0 || sizes.heads == 0 || sizes.length == 0;
}

}  // namespace

std::string lavo_refusal(const LavoSizes& sizes) {
  constexpr std::int64_t most = std::int64_t{1} << 29;  // tokens are numbered in 31 bits
  if (sizes.batch < 0 || sizes.heads < 0 || sizes.length < 0 || sizes.memory_length < 0 ||
      sizes.phase < 0) {
    return "a size is negative";
  }
  if (sizes.bases < 1 || sizes.bases > most_bases) return "the bases are not 1 to 256";
  if (sizes.head_dim < 1 || sizes.head_dim > most_dim) {
    return "head_dim is not within 1 and 256";
  }
  if (sizes.order == MemoryOrder::windows && sizes.window < 1) return "a window holds no token";
  const bool own = sizes.averaged || sizes.order != MemoryOrder::all;
  if (own && sizes.memory_length != sizes.length) return "there are not as many tokens as queries";
  const std::int64_t length = std::max({sizes.length, sizes.memory_length, std::int64_t{1}});
  if (length >= most || sizes.batch * sizes.heads > most) {
    return "batch * heads or the length is above 2^29";
  }
  const std::int64_t tiles = (length + product_tile - 1) / product_tile;
  if (sizes.batch * sizes.heads * tiles * 4 >= std::int64_t{1} << 31) {
    return "more tokens than a grid has room for";
  }
  return {};
}

template <class T>
std::size_t lavo_forward_bytes(const LavoSizes& sizes) {
  require_supported(sizes);
  Workspace count;
  MemoryArguments<T> a;
  lend(count, sizes, false, a);
  return count.used();
}

template <class T>
void lavo_forward(const LavoSizes& sizes, const LavoArguments<T>& arguments, Stream stream,
                  void* workspace, std::size_t workspace_bytes) {
  require_supported(sizes);
  if (nothing_to_read(sizes)) return;
  const std::int64_t slots = sizes.batch * sizes.heads;
  const auto blocks = static_cast<unsigned>(slots);
  MemoryArguments<T> a = arguments_of(sizes, arguments);
  a.carry = arguments.carry;
  const bool carried = a.carry.mean != nullptr;
  if (carried && sizes.length == 1) {
    launch(memory_step<T>, dim3(blocks), dim3(query_threads), 0, stream, a, arguments.out);
  } else {
    Workspace space(workspace, workspace_bytes);
    lend(space, sizes, false, a);
    launch_means(a, slots, stream);
    launch_queries<T, false>(a, slots, stream);
    if (carried && a.windows_read) {
      launch(memory_window<T>, dim3(blocks), dim3(query_threads), 0, stream, a);
    }
    const Rows<const T> own = a.averaged ? a.tokens : Rows<const T>{};
    launch_combined(a, a.asked, a.length, arguments.out, own, a.averaged ? 0.5F : 1.F, slots,
                    stream);
  }
  if (!carried) return;
  launch(memory_counts<T>, dim3(static_cast<unsigned>((sizes.batch + 31) / 32)), dim3(32), 0,
         stream, a, static_cast<int>(sizes.batch));
}

template <class T>
std::size_t lavo_backward_bytes(const LavoSizes& sizes) {
  require_supported(sizes);
  Workspace count;
  MemoryArguments<T> a;
  lend(count, sizes, true, a);
  return count.used();
}

template <class T>
void lavo_backward(const LavoSizes& sizes, const LavoArguments<T>& arguments,
                   const LavoGradients<T>& gradients, Stream stream, void* workspace,
                   std::size_t workspace_bytes) {
  require_supported(sizes);
  if (sizes.heads == 0) return;
  const std::int64_t slots = sizes.batch * sizes.heads;
  MemoryArguments<T> a = arguments_of(sizes, arguments);
  a.d_out = gradients.d_out;
  Workspace space(workspace, workspace_bytes);
  float* const parts = lend(space, sizes, true, a);
  const int part_count = GradientParts(sizes).count;
  if (slots > 0) {
    launch_means(a, slots, stream);
    launch_coordinates(a, a.d_out, a.length, false, true, a.grad, slots, stream);
    launch_queries<T, true>(a, slots, stream);
    launch(memory_later<T>,
           dim3(static_cast<unsigned>(slots),
                static_cast<unsigned>((a.count + walk_threads - 1) / walk_threads)),
           dim3(walk_threads), 0, stream, a);
    BasesGradient<T> p{.a = a, .parts = part_count, .part = GradientParts::part, .to = parts};
    launch_product<T>(p, a.count, a.dim, GradientParts::part, slots * part_count, stream);
    launch_combined(a, a.asked, a.length, gradients.d_query, {}, 1, slots, stream);
    const Rows<const T> own = a.averaged ? a.d_out : Rows<const T>{};
    launch_combined(a, a.later, a.memory_length, gradients.d_tokens, own, 1, slots, stream);
  }
  const std::int64_t numbers = sizes.bases * sizes.head_dim;
  launch(sum_parts,
         dim3(static_cast<unsigned>((sizes.heads * numbers + query_threads - 1) / query_threads)),
         dim3(query_threads), 0, stream, parts, gradients.d_bases, numbers, sizes.heads,
         sizes.batch, part_count);
}

#define ATTNBENCH_INSTANTIATE(T)                                                          \
  template std::size_t lavo_forward_bytes<T>(const LavoSizes&);                           \
  template void lavo_forward<T>(const LavoSizes&, const LavoArguments<T>&, Stream, void*, \
                                std::size_t);                                             \
  template std::size_t lavo_backward_bytes<T>(const LavoSizes&);                          \
  template void lavo_backward<T>(const LavoSizes&, const LavoArguments<T>&,               \
                                 const LavoGradients<T>&, Stream, void*, std::size_t);
ATTNBENCH_FOR_CUDA_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels::cuda
