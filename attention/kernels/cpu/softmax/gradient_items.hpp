// How the backward pass of the tiled softmax is cut into items: Dao et al. 2022, algorithm 4, with
// keys outside and queries inside, so that dk and dv of a tile stay in cache.
//
// An item is one part of the keys of one head. Each part sums a dq of its own, and these are added
// in order at the end: no atomics. The number of parts depends on the sizes alone, so the results
// are the same bits for any number of threads.
#pragma once

#include "attention/kernels/cpu/softmax/bias.hpp"
#include "attention/kernels/cpu/softmax/tile.hpp"

namespace attnbench::kernels {

/// Parts that the keys of one head are dealt into, tile by tile, where there are too few heads for
/// this many items. Each costs a dq.
inline std::int64_t key_parts(const SoftmaxSizes& sizes, std::int64_t tile) {
  constexpr std::int64_t wanted_items = 8;
  const std::int64_t tiles = (sizes.key_length + tile - 1) / tile;
  return std::clamp<std::int64_t>(wanted_items / (sizes.batch * sizes.kv_heads), 1,
                                  std::max<std::int64_t>(tiles, 1));
}

/// How an engine lays things out.
struct GradientLayout {
  std::int64_t query_tile, key_tile;  ///< tokens
  std::int64_t dim;                   ///< of the head, padded
  bool transposed;  ///< the dq of one tile of queries is [dim, query_tile], not [query_tile, dim]
};

/// What all workers share: per query, sum_d d_out * out; and the partial dq and d_bias.
template <class R>
struct GradientShared {
  BiasRange range;
  std::int64_t parts, rows, dim;
  R* delta;   ///< [batch * heads, length]
  R* dq;      ///< [batch * heads, parts, rows, dim]
  R* bias;    ///< a table
  R* d_bias;  ///< [batch * kv_heads, parts], a table each

  GradientShared(Workspace& space, const SoftmaxSizes& sizes, const GradientLayout& layout)
      : range(sizes),
        parts(key_parts(sizes, layout.key_tile)),
        rows(rounded(sizes.length, layout.query_tile)),
        dim(layout.dim),
        delta(space.take<R>(sizes.batch * sizes.heads * sizes.length)),
        dq(space.take<R>(sizes.batch * sizes.heads * parts * rows * dim)),
        bias(space.take<R>(range.size())),
        d_bias(space.take<R>(sizes.batch * sizes.kv_heads * parts * range.size())) {}
  /// The numbers of the queries from t on; a tile begins at t where they are transposed.
  R* dq_of(std::int64_t head, std::int64_t part, std::int64_t t) const {
    return dq + ((head * parts + part) * rows + t) * dim;
  }
};

template <class T>
struct BackwardCall {
  const SoftmaxSizes& sizes;
  const SoftmaxArguments<T>& in;
  const SoftmaxGradients<T>& out;
  GradientLayout layout;
  GradientShared<Compute<T>> shared;
};

/// One part of the keys of one head.
struct BackwardItem {
  std::int64_t b, kv, part;

  /// Its place among all items, by which their tables lie.
  std::int64_t index(const SoftmaxSizes& sizes, std::int64_t parts) const {
    return (b * sizes.kv_heads + kv) * parts + part;
  }
};

/// A way of computing items: what one worker is lent, and the function.
template <class T>
struct BackwardEngine {
  GradientLayout layout;
  std::size_t scratch_bytes;
  void (*work)(const BackwardCall<T>&, void* scratch, const BackwardItem&);
};

/// A run of queries of one head, for what is done query by query.
struct QueryRun {
  std::int64_t b, h, begin, end;
};
constexpr std::int64_t run_length = 384;  // whole tiles of every engine

template <class T>
void prepare_gradients(const BackwardCall<T>& call, const QueryRun& run) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const std::int64_t head = run.b * sizes.heads + run.h;
  for (std::int64_t t = run.begin; t < run.end; ++t) {
    const T* out = call.in.out.at(run.b, run.h, t);
    const T* d_out = call.out.d_out.at(run.b, run.h, t);
    R sums[8] = {};  // side by side, so that they may share a vector
    std::int64_t d = 0;
    for (; d + 8 <= sizes.value_dim; d += 8) {
      for (int j = 0; j < 8; ++j) sums[j] += widen(out[d + j]) * widen(d_out[d + j]);
    }
    for (; d < sizes.value_dim; ++d) sums[0] += widen(out[d]) * widen(d_out[d]);
    R total = 0;
    for (const R sum : sums) total += sum;
    call.shared.delta[head * sizes.length + t] = total;
  }
  const std::int64_t end = run.end == sizes.length ? call.shared.rows : run.end;
  for (std::int64_t part = 0; part < call.shared.parts; ++part) {
    std::fill(call.shared.dq_of(head, part, run.begin), call.shared.dq_of(head, part, end), R{0});
  }
}

template <class T>
void finish_gradients(const BackwardCall<T>& call, const QueryRun& run) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const GradientLayout& layout = call.layout;
  const std::int64_t head = run.b * sizes.heads + run.h;
  const auto scale = static_cast<R>(sizes.scale);
  for (std::int64_t t0 = run.begin; t0 < run.end; t0 += layout.query_tile) {
    R* const sum = call.shared.dq_of(head, 0, t0);
    for (std::int64_t part = 1; part < call.shared.parts; ++part) {
      const R* const more = call.shared.dq_of(head, part, t0);
      for (std::int64_t i = 0; i < layout.query_tile * layout.dim; ++i) sum[i] += more[i];
    }
    const std::int64_t d_stride = layout.transposed ? layout.query_tile : 1;
    const std::int64_t t_stride = layout.transposed ? 1 : layout.dim;
    for (std::int64_t i = 0; i < std::min(layout.query_tile, run.end - t0); ++i) {
      T* const dq = call.out.dq.at(run.b, run.h, t0 + i);
      for (std::int64_t d = 0; d < sizes.head_dim; ++d) {
        narrow(scale * sum[i * t_stride + d * d_stride], dq[d]);
      }
    }
  }
}

/// Adds up what the items found for the biases.
template <class T>
void finish_bias(const BackwardCall<T>& call) {
  const BiasRange& range = call.shared.range;
  const std::int64_t items = call.sizes.batch * call.sizes.kv_heads * call.shared.parts;
  for (std::int64_t i = 0; i <= 2 * range.reach; ++i) {
    Compute<T> sum = 0;
    for (std::int64_t item = 0; item < items; ++item) {
      sum += call.shared.d_bias[item * range.size() + BiasRange::beyond + i];
    }
    call.out.d_bias[i] = sum;
  }
}

/// Gradients of one tile of keys: scale * dk and dv, in rows of `dim` and `value_dim`.
template <class T>
ATTNBENCH_INLINE void write_keys(const BackwardCall<T>& call, const BackwardItem& item,
                                 std::int64_t s0, std::int64_t count, const Compute<T>* dk,
                                 std::int64_t dim, const Compute<T>* dv, std::int64_t value_dim) {
  const auto scale = static_cast<Compute<T>>(call.sizes.scale);
  for (std::int64_t i = 0; i < count; ++i) {
    T* const to_k = call.out.dk.at(item.b, item.kv, s0 + i);
    T* const to_v = call.out.dv.at(item.b, item.kv, s0 + i);
    for (std::int64_t d = 0; d < call.sizes.head_dim; ++d) narrow(scale * dk[i * dim + d], to_k[d]);
    for (std::int64_t d = 0; d < call.sizes.value_dim; ++d) narrow(dv[i * value_dim + d], to_v[d]);
  }
}

}  // namespace attnbench::kernels
