// Gradients of the tiled softmax: Dao et al. 2022, algorithm 4, with keys outside and queries
// inside, so that dk and dv of a tile stay in cache. Each part of the keys sums a dq of its own,
// which are added in order at the end: no atomics, the same bits every time.
#include <cmath>

#include "attention/kernels/softmax.hpp"
#include "attention/kernels/softmax_tile.hpp"

namespace attnbench::kernels {
namespace {

/// Parts that the keys of one head are dealt into, tile by tile, where there are too few heads to
/// keep all threads busy.
std::int64_t key_parts(const SoftmaxSizes& sizes, int threads) {
  const std::int64_t heads = sizes.batch * sizes.kv_heads;
  const std::int64_t tiles = (sizes.key_length + key_tile(sizes) - 1) / key_tile(sizes);
  if (threads == 1 || heads >= 2 * threads) return 1;
  return std::clamp<std::int64_t>(2 * threads / heads, 1, std::max<std::int64_t>(tiles, 1));
}

/// What all workers share: per query, sum_d d_out * out; and the partial dq.
template <class R>
struct Shared {
  std::int64_t parts, dim;
  R* delta;  // [batch * heads, length]
  R* dq;     // [batch * heads, parts, length, dim]

  Shared(Workspace& space, const SoftmaxSizes& sizes, int threads)
      : parts(key_parts(sizes, threads)),
        dim(padded(sizes.head_dim, sizeof(R))),
        delta(space.take<R>(sizes.batch * sizes.heads * sizes.length)),
        dq(space.take<R>(sizes.batch * sizes.heads * parts * rounded_rows(sizes.length) * dim)) {}
  R* dq_of(const SoftmaxSizes& sizes, std::int64_t head, std::int64_t part) const {
    return dq + (head * parts + part) * rounded_rows(sizes.length) * dim;
  }
};

/// What one worker holds: a tile of keys with its gradients, a tile of queries, their scores.
template <class R>
struct Scratch {
  std::int64_t columns, dim, value_dim;
  R *keys, *keys_transposed, *values_transposed, *dk, *dv;
  R *q, *d_out, *weights, *d_scores;

  Scratch(Workspace& space, const SoftmaxSizes& sizes)
      : columns(key_tile(sizes)),
        dim(padded(sizes.head_dim, sizeof(R))),
        value_dim(padded(sizes.value_dim, sizeof(R))),
        keys(space.take<R>(columns * dim)),
        keys_transposed(space.take<R>(sizes.head_dim * columns)),
        values_transposed(space.take<R>(sizes.value_dim * columns)),
        dk(space.take<R>(columns * dim)),
        dv(space.take<R>(columns * value_dim)),
        q(space.take<R>(query_tile * dim)),
        d_out(space.take<R>(query_tile * value_dim)),
        weights(space.take<R>(query_tile * columns)),
        d_scores(space.take<R>(query_tile * columns)) {}
};

template <class T>
struct Call {
  const SoftmaxSizes& sizes;
  const SoftmaxArguments<T>& in;
  const SoftmaxGradients<T>& out;
  Shared<Compute<T>> shared;
};

template <class T>
void prepare_head(const Call<T>& call, std::int64_t head) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const std::int64_t b = head / sizes.heads;
  const std::int64_t h = head % sizes.heads;
  for (std::int64_t t = 0; t < sizes.length; ++t) {
    const T* out = call.in.out.at(b, h, t);
    const T* d_out = call.out.d_out.at(b, h, t);
    R sum = 0;
    for (std::int64_t d = 0; d < sizes.value_dim; ++d) sum += widen(out[d]) * widen(d_out[d]);
    call.shared.delta[head * sizes.length + t] = sum;
  }
  std::fill_n(call.shared.dq_of(sizes, head, 0),
              call.shared.parts * rounded_rows(sizes.length) * call.shared.dim, R{0});
}

template <class T>
void finish_head(const Call<T>& call, std::int64_t head) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const std::int64_t b = head / sizes.heads;
  const std::int64_t h = head % sizes.heads;
  for (std::int64_t t = 0; t < sizes.length; ++t) {
    for (std::int64_t d = 0; d < sizes.head_dim; ++d) {
      R sum = 0;
      for (std::int64_t part = 0; part < call.shared.parts; ++part) {
        sum += call.shared.dq_of(sizes, head, part)[t * call.shared.dim + d];
      }
      narrow(static_cast<R>(sizes.scale) * sum, call.out.dq.at(b, h, t)[d]);
    }
  }
}

/// Weights from scores, and the gradient of the scores from that of the weights, in place.
template <class R, int Bytes>
ATTNBENCH_INLINE void differentiate_row(R* weights, R* d_scores, std::int64_t columns, R lse,
                                        R delta) {
  using S = Simd<R, Bytes>;
  for (std::int64_t j = 0; j < columns; j += S::lanes) {
    const auto weight = S::exp2(S::load(weights + j) - lse);
    S::store(weights + j, weight);
    S::store(d_scores + j, weight * (S::load(d_scores + j) - delta));
  }
}

/// One score tile: adds to dk, dv and dq.
template <class T, int Bytes>
ATTNBENCH_INLINE void backward_tile(const Call<T>& call, const Scratch<Compute<T>>& s,
                                    std::int64_t b, std::int64_t h, std::int64_t part,
                                    std::int64_t t0, std::int64_t rows, std::int64_t s0,
                                    std::int64_t keys) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const std::int64_t head = b * sizes.heads + h;
  const std::int64_t padded_rows = rounded_rows(rows);
  pack(call.in.q.at(b, h, t0), call.in.q.row_stride, rows, sizes.head_dim,
       static_cast<R>(sizes.scale * log2_of_e), s.q, s.dim);
  pack(call.out.d_out.at(b, h, t0), call.out.d_out.row_stride, rows, sizes.value_dim, R{1}, s.d_out,
       s.value_dim);
  std::fill_n(s.q + rows * s.dim, (padded_rows - rows) * s.dim, R{0});
  std::fill_n(s.d_out + rows * s.value_dim, (padded_rows - rows) * s.value_dim, R{0});

  multiply<R, Bytes, false>(padded_rows, s.columns, sizes.head_dim, {s.q, s.dim, 1},
                            s.keys_transposed, s.columns, s.weights, s.columns);
  multiply<R, Bytes, false>(padded_rows, s.columns, sizes.value_dim, {s.d_out, s.value_dim, 1},
                            s.values_transposed, s.columns, s.d_scores, s.columns);
  const std::uint8_t* mask =
      call.in.key_mask == nullptr ? nullptr : call.in.key_mask + b * call.in.mask_stride;
  hide(sizes, mask, t0, rows, s0, s.columns, s.weights);
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t row = head * sizes.length + t0 + i;
    differentiate_row<R, Bytes>(s.weights + i * s.columns, s.d_scores + i * s.columns, s.columns,
                                call.in.lse[row] * static_cast<R>(log2_of_e),
                                call.shared.delta[row]);
  }
  // Rows past the last query hold weights of their own making.
  std::fill_n(s.d_scores + rows * s.columns, (padded_rows - rows) * s.columns, R{0});

  const std::int64_t padded_keys = rounded_rows(keys);
  multiply<R, Bytes, true>(padded_keys, s.value_dim, rows, {s.weights, 1, s.columns}, s.d_out,
                           s.value_dim, s.dv, s.value_dim);
  multiply<R, Bytes, true>(padded_keys, s.dim, rows, {s.d_scores, 1, s.columns}, s.q, s.dim, s.dk,
                           s.dim);
  multiply<R, Bytes, true>(padded_rows, s.dim, keys, {s.d_scores, s.columns, 1}, s.keys, s.dim,
                           call.shared.dq_of(sizes, head, part) + t0 * s.dim, s.dim);
}

/// One item: every `parts`-th key tile of one key head, against all queries that see it.
template <class T, int Bytes>
ATTNBENCH_INLINE void backward_item(const Call<T>& call, const Scratch<Compute<T>>& s,
                                    std::int64_t b, std::int64_t kv, std::int64_t part) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const std::int64_t group = sizes.heads / sizes.kv_heads;
  for (std::int64_t s0 = part * s.columns; s0 < sizes.key_length;
       s0 += call.shared.parts * s.columns) {
    const std::int64_t keys = std::min(s.columns, sizes.key_length - s0);
    const T* k = call.in.k.at(b, kv, s0);
    const T* v = call.in.v.at(b, kv, s0);
    pack(k, call.in.k.row_stride, keys, sizes.head_dim, R{1}, s.keys, s.dim);
    pack_transposed(k, call.in.k.row_stride, keys, sizes.head_dim, s.keys_transposed, s.columns);
    pack_transposed(v, call.in.v.row_stride, keys, sizes.value_dim, s.values_transposed, s.columns);
    std::fill_n(s.dk, s.columns * s.dim, R{0});
    std::fill_n(s.dv, s.columns * s.value_dim, R{0});
    const std::int64_t first = std::max<std::int64_t>(0, s0 - sizes.offset - sizes.right);
    const std::int64_t last = std::min(sizes.length - 1, s0 + keys - 1 - sizes.offset + sizes.left);
    for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
      // From a multiple of the row unit, so that the padding of one tile's dq never reaches past
      // the rows that the workspace holds.
      for (std::int64_t t0 = first / row_unit * row_unit; t0 <= last; t0 += query_tile) {
        backward_tile<T, Bytes>(call, s, b, h, part, t0, std::min(query_tile, sizes.length - t0),
                                s0, keys);
      }
    }
    for (std::int64_t i = 0; i < keys; ++i) {
      T* dk = call.out.dk.at(b, kv, s0 + i);
      T* dv = call.out.dv.at(b, kv, s0 + i);
      // q was packed with log2(e) in it.
      for (std::int64_t d = 0; d < sizes.head_dim; ++d) {
        narrow(static_cast<R>(ln_of_2) * s.dk[i * s.dim + d], dk[d]);
      }
      for (std::int64_t d = 0; d < sizes.value_dim; ++d) narrow(s.dv[i * s.value_dim + d], dv[d]);
    }
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
  Shared<Compute<T>>(count, sizes, threads);
  return count.used() + static_cast<std::size_t>(threads) * scratch_bytes<Compute<T>>(sizes);
}

template <class T>
void softmax_backward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                      const SoftmaxGradients<T>& gradients, ThreadTeam& team, void* workspace,
                      std::size_t workspace_bytes) {
  Workspace space(workspace, workspace_bytes);
  const Call<T> call{sizes, arguments, gradients, {space, sizes, team.size()}};
  const auto each = static_cast<std::int64_t>(scratch_bytes<Compute<T>>(sizes));
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const auto item = pick(backward_baseline<T>, backward_avx2<T>, backward_avx512<T>);
  const std::int64_t heads = sizes.batch * sizes.heads;
  const std::int64_t kv_heads = sizes.batch * sizes.kv_heads;
  share(team, heads, [&](int, std::int64_t head) { prepare_head(call, head); });
  share(team, kv_heads * call.shared.parts, [&](int worker, std::int64_t index) {
    Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
    const Scratch<Compute<T>> s(own, sizes);
    const std::int64_t kv = index % kv_heads;
    item(call, s, kv / sizes.kv_heads, kv % sizes.kv_heads, index / kv_heads);
  });
  share(team, heads, [&](int, std::int64_t head) { finish_head(call, head); });
}

#define ATTNBENCH_INSTANTIATE(T)                                                     \
  template std::size_t softmax_backward_bytes<T>(const SoftmaxSizes&, int);          \
  template void softmax_backward<T>(const SoftmaxSizes&, const SoftmaxArguments<T>&, \
                                    const SoftmaxGradients<T>&, ThreadTeam&, void*, std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
ATTNBENCH_INSTANTIATE(BFloat16)

}  // namespace attnbench::kernels
