// How the backward pass of the tiled softmax is cut into items: Dao et al. 2022, algorithm 4, with
// keys outside and queries inside, so that dk and dv of a tile stay in cache.
//
// An item is one part of the keys of one head. Each part sums a dq of its own, and these are added
// in order at the end: no atomics. The number of parts depends on the sizes alone, so the results
// are the same bits for any number of threads.
#include <cmath>

#include "attention/kernels/softmax.hpp"
#include "attention/kernels/softmax_backward.hpp"

namespace attnbench::kernels {
namespace {

/// Parts that the keys of one head are dealt into, tile by tile, where there are too few heads for
/// this many items. Each costs a dq.
std::int64_t key_parts(const SoftmaxSizes& sizes) {
  constexpr std::int64_t wanted_items = 8;
  const std::int64_t tiles = (sizes.key_length + gradient_keys - 1) / gradient_keys;
  return std::clamp<std::int64_t>(wanted_items / (sizes.batch * sizes.kv_heads), 1,
                                  std::max<std::int64_t>(tiles, 1));
}

/// What all workers share: per query, sum_d d_out * out; and the partial dq and d_bias.
template <class R>
struct Shared {
  BiasRange range;
  std::int64_t parts, rows, dim;
  R* delta;   // [batch * heads, length]
  R* dq;      // [batch * heads, parts, rows, dim]
  R* bias;    // a table
  R* d_bias;  // [batch * kv_heads, parts], a table each

  Shared(Workspace& space, const SoftmaxSizes& sizes)
      : range(sizes),
        parts(key_parts(sizes)),
        rows(rounded(sizes.length, gradient_queries)),
        dim(padded(sizes.head_dim, sizeof(R))),
        delta(space.take<R>(sizes.batch * sizes.heads * sizes.length)),
        dq(space.take<R>(sizes.batch * sizes.heads * parts * rows * dim)),
        bias(space.take<R>(range.size())),
        d_bias(space.take<R>(sizes.batch * sizes.kv_heads * parts * range.size())) {}
  R* dq_of(std::int64_t head, std::int64_t part, std::int64_t t) const {
    return dq + ((head * parts + part) * rows + t) * dim;
  }
};

/// What one worker holds: a tile of keys with its gradients, a tile of queries, their scores.
template <class R>
struct Scratch {
  std::int64_t dim, value_dim;
  R *keys, *keys_transposed, *values_transposed, *dk, *dv;
  R *q, *d_out;  // where they cannot be used as they lie
  R *weights, *d_scores;

  Scratch(Workspace& space, const SoftmaxSizes& sizes)
      : dim(padded(sizes.head_dim, sizeof(R))),
        value_dim(padded(sizes.value_dim, sizeof(R))),
        keys(space.take<R>(gradient_keys * dim)),
        keys_transposed(space.take<R>(dim * gradient_keys)),
        values_transposed(space.take<R>(value_dim * gradient_keys)),
        dk(space.take<R>(gradient_keys * dim)),
        dv(space.take<R>(gradient_keys * value_dim)),
        q(space.take<R>(gradient_queries * dim)),
        d_out(space.take<R>(gradient_queries * value_dim)),
        weights(space.take<R>(gradient_queries * gradient_keys)),
        d_scores(space.take<R>(gradient_queries * gradient_keys)) {}
};

template <class T>
struct Call {
  const SoftmaxSizes& sizes;
  const SoftmaxArguments<T>& in;
  const SoftmaxGradients<T>& out;
  Shared<Compute<T>> shared;
};

/// A run of queries of one head, for what is done query by query.
struct Run {
  std::int64_t b, h, begin, end;
};
constexpr std::int64_t run_length = 256;

template <class T>
void prepare(const Call<T>& call, const Run& run) {
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
void finish(const Call<T>& call, const Run& run) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const std::int64_t head = run.b * sizes.heads + run.h;
  for (std::int64_t t = run.begin; t < run.end; ++t) {
    R* const sum = call.shared.dq_of(head, 0, t);
    for (std::int64_t part = 1; part < call.shared.parts; ++part) {
      const R* const more = call.shared.dq_of(head, part, t);
      for (std::int64_t d = 0; d < call.shared.dim; ++d) sum[d] += more[d];
    }
    T* const dq = call.out.dq.at(run.b, run.h, t);
    for (std::int64_t d = 0; d < sizes.head_dim; ++d) {
      narrow(static_cast<R>(sizes.scale) * sum[d], dq[d]);
    }
  }
}

/// Adds up what the items found for the biases.
template <class T>
void finish_bias(const Call<T>& call) {
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

/// A tile of queries in rows of whole vectors: as they lie, or packed into `scratch`.
template <class T>
ATTNBENCH_INLINE const Compute<T>* query_rows(const T* from, std::int64_t row_stride,
                                              std::int64_t rows, std::int64_t width,
                                              Compute<T>* scratch, std::int64_t stride) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    if (rows == gradient_queries && lies_packed(from, row_stride, width)) return from;
  }
  pack(from, row_stride, rows, width, scratch, stride);
  std::fill_n(scratch + rows * stride, (gradient_queries - rows) * stride, Compute<T>{0});
  return scratch;
}

/// One tile of keys against all queries that see it.
template <class T, int Bytes>
ATTNBENCH_INLINE void backward_keys(const Call<T>& call, const Scratch<Compute<T>>& s,
                                    std::int64_t b, std::int64_t kv, std::int64_t part,
                                    std::int64_t s0) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const std::int64_t group = sizes.heads / sizes.kv_heads;
  const std::int64_t count = std::min(gradient_keys, sizes.key_length - s0);
  const T* const k = call.in.k.at(b, kv, s0);
  const T* const v = call.in.v.at(b, kv, s0);
  const std::uint8_t* const mask =
      call.in.key_mask == nullptr ? nullptr : call.in.key_mask + b * call.in.mask_stride + s0;
  pack(k, call.in.k.row_stride, count, sizes.head_dim, s.keys, s.dim);
  pack_transposed<T, Bytes>(k, call.in.k.row_stride, count, sizes.head_dim,
                            static_cast<R>(sizes.scale * log2_of_e), s.keys_transposed,
                            gradient_keys);
  pack_transposed<T, Bytes>(v, call.in.v.row_stride, count, sizes.value_dim, R{1},
                            s.values_transposed, gradient_keys);
  std::fill_n(s.dk, gradient_keys * s.dim, R{0});
  std::fill_n(s.dv, gradient_keys * s.value_dim, R{0});
  const BiasRange& range = call.shared.range;
  const R* const bias = range.any() ? call.shared.bias + range.centre() : nullptr;
  const std::int64_t item = (b * sizes.kv_heads + kv) * call.shared.parts + part;
  R* const d_bias = call.shared.d_bias + item * range.size() + range.centre();
  const GradientKeys<R> keys{s0, count, s.keys, s.keys_transposed, s.values_transposed, s.dk, s.dv};
  const std::int64_t first = seeing_queries(sizes, s0).begin;
  const std::int64_t last = seeing_queries(sizes, s0 + count - 1).end;
  for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
    const std::int64_t head = b * sizes.heads + h;
    for (std::int64_t t0 = first / gradient_queries * gradient_queries; t0 < last;
         t0 += gradient_queries) {
      const std::int64_t rows = std::min(gradient_queries, sizes.length - t0);
      const GradientQueries<R> queries{
          t0,
          rows,
          query_rows(call.in.q.at(b, h, t0), call.in.q.row_stride, rows, sizes.head_dim, s.q,
                     s.dim),
          query_rows(call.out.d_out.at(b, h, t0), call.out.d_out.row_stride, rows, sizes.value_dim,
                     s.d_out, s.value_dim),
          s.dim,
          s.value_dim,
          call.in.lse + head * sizes.length + t0,
          call.shared.delta + head * sizes.length + t0,
          call.shared.dq_of(head, part, t0)};
      differentiate_tile<R, Bytes>(sizes, mask, bias, queries, keys, s.weights, s.d_scores, d_bias);
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    T* const dk = call.out.dk.at(b, kv, s0 + i);
    T* const dv = call.out.dv.at(b, kv, s0 + i);
    for (std::int64_t d = 0; d < sizes.head_dim; ++d) {
      narrow(static_cast<R>(sizes.scale) * s.dk[i * s.dim + d], dk[d]);
    }
    for (std::int64_t d = 0; d < sizes.value_dim; ++d) narrow(s.dv[i * s.value_dim + d], dv[d]);
  }
}

/// One item: every `parts`-th key tile of one key head.
template <class T, int Bytes>
ATTNBENCH_INLINE void backward_item(const Call<T>& call, const Scratch<Compute<T>>& s,
                                    std::int64_t b, std::int64_t kv, std::int64_t part) {
  const std::int64_t step = call.shared.parts * gradient_keys;
  const std::int64_t table = call.shared.range.size();
  const std::int64_t item = (b * call.sizes.kv_heads + kv) * call.shared.parts + part;
  std::fill_n(call.shared.d_bias + item * table, table, Compute<T>{0});
  for (std::int64_t s0 = part * gradient_keys; s0 < call.sizes.key_length; s0 += step) {
    backward_keys<T, Bytes>(call, s, b, kv, part, s0);
  }
}

template <class T>
void backward_baseline(const Call<T>& call, const Scratch<Compute<T>>& s, std::int64_t b,
                       std::int64_t kv, std::int64_t part) {
  backward_item<T, 16>(call, s, b, kv, part);
}
template <class T>
ATTNBENCH_AVX2 void backward_avx2(const Call<T>& call, const Scratch<Compute<T>>& s, std::int64_t b,
                                  std::int64_t kv, std::int64_t part) {
  backward_item<T, 32>(call, s, b, kv, part);
}
template <class T>
ATTNBENCH_AVX512 void backward_avx512(const Call<T>& call, const Scratch<Compute<T>>& s,
                                      std::int64_t b, std::int64_t kv, std::int64_t part) {
  backward_item<T, 64>(call, s, b, kv, part);
}

template <class R>
std::size_t scratch_bytes(const SoftmaxSizes& sizes) {
  Workspace count;
  Scratch<R>(count, sizes);
  return count.used();
}

}  // namespace

template <class T>
std::size_t softmax_backward_bytes(const SoftmaxSizes& sizes, int threads) {
  Workspace count;
  Shared<Compute<T>>(count, sizes);
  return count.used() + static_cast<std::size_t>(threads) * scratch_bytes<Compute<T>>(sizes);
}

template <class T>
void softmax_backward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                      const SoftmaxGradients<T>& gradients, ThreadTeam& team, void* workspace,
                      std::size_t workspace_bytes) {
  Workspace space(workspace, workspace_bytes);
  const Call<T> call{sizes, arguments, gradients, {space, sizes}};
  const auto each = static_cast<std::int64_t>(scratch_bytes<Compute<T>>(sizes));
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const auto item = pick(backward_baseline<T>, backward_avx2<T>, backward_avx512<T>);
  const std::int64_t kv_heads = sizes.batch * sizes.kv_heads;
  const std::int64_t runs = (sizes.length + run_length - 1) / run_length;
  const auto run_of = [&](std::int64_t index) {
    const std::int64_t head = index / runs;
    const std::int64_t begin = index % runs * run_length;
    return Run{head / sizes.heads, head % sizes.heads, begin,
               std::min(begin + run_length, sizes.length)};
  };
  bias_table(call.shared.range, arguments.bias, false, call.shared.bias);
  const std::int64_t all_runs = sizes.batch * sizes.heads * runs;
  share(team, all_runs, [&](int, std::int64_t index) { prepare(call, run_of(index)); });
  share(team, kv_heads * call.shared.parts, [&](int worker, std::int64_t index) {
    Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
    const Scratch<Compute<T>> s(own, sizes);
    const std::int64_t kv = index % kv_heads;
    item(call, s, kv / sizes.kv_heads, kv % sizes.kv_heads, index / kv_heads);
  });
  share(team, all_runs, [&](int, std::int64_t index) { finish(call, run_of(index)); });
  finish_bias(call);
}

#define ATTNBENCH_INSTANTIATE(T)                                                     \
  template std::size_t softmax_backward_bytes<T>(const SoftmaxSizes&, int);          \
  template void softmax_backward<T>(const SoftmaxSizes&, const SoftmaxArguments<T>&, \
                                    const SoftmaxGradients<T>&, ThreadTeam&, void*, std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
ATTNBENCH_INSTANTIATE(BFloat16)

}  // namespace attnbench::kernels
