#include <cmath>

#include "attention/kernels/softmax.hpp"
#include "attention/kernels/softmax_tile.hpp"

namespace attnbench::kernels {
namespace {

/// Queries of one item: each packed key tile serves all of them, but every thread wants items.
std::int64_t item_rows(const SoftmaxSizes& sizes, int threads) {
  std::int64_t rows = 256;
  while (rows > query_tile &&
         sizes.batch * sizes.heads * ((sizes.length + rows - 1) / rows) < 3 * threads) {
    rows /= 2;
  }
  return std::min(rows, rounded_rows(sizes.length));
}

/// What one worker holds while it works on an item.
template <class R>
struct Scratch {
  std::int64_t rows, columns, dim, value_dim;
  R *q, *out, *greatest, *sum;  // of the item's queries
  R *keys, *values;             // of one key tile; the keys transposed
  R* scores;                    // of one tile

  Scratch(Workspace& space, const SoftmaxSizes& sizes, int threads)
      : rows(item_rows(sizes, threads)),
        columns(key_tile(sizes)),
        dim(padded(sizes.head_dim, sizeof(R))),
        value_dim(padded(sizes.value_dim, sizeof(R))),
        q(space.take<R>(rows * dim)),
        out(space.take<R>(rows * value_dim)),
        greatest(space.take<R>(rows)),
        sum(space.take<R>(rows)),
        keys(space.take<R>(dim * columns)),
        values(space.take<R>(columns * value_dim)),
        scores(space.take<R>(query_tile * columns)) {}
};

/// One row of scores becomes weights relative to the greatest score so far, which moves with it.
template <class R, int Bytes>
ATTNBENCH_INLINE void take_row(R* scores, std::int64_t columns, R& greatest, R& sum, R* out,
                               std::int64_t value_dim) {
  using S = Simd<R, Bytes>;
  auto most = S::load(scores);
  for (std::int64_t j = S::lanes; j < columns; j += S::lanes) {
    most = S::greater(most, S::load(scores + j));
  }
  const R before = greatest;
  const R after = std::max(before, S::greatest(most));
  // A row that has seen no key yet must not compute infinity minus infinity.
  const R base = std::isinf(after) ? R{0} : after;
  auto total = S::all(0);
  for (std::int64_t j = 0; j < columns; j += S::lanes) {
    const auto weight = S::exp2(S::load(scores + j) - base);
    S::store(scores + j, weight);
    total += weight;
  }
  if (after != before) {
    const R factor = std::exp2(before - base);
    sum *= factor;
    for (std::int64_t d = 0; d < value_dim; d += S::lanes) {
      S::store(out + d, S::load(out + d) * factor);
    }
    greatest = after;
  }
  sum += S::sum(total);
}

/// So few queries, as when one token is decoded, are not worth transposing keys for.
constexpr std::int64_t few_queries = 4;

/// Scores of a few queries by one product after the other; the keys lie in rows.
template <class R, int Bytes>
ATTNBENCH_INLINE void few_scores(const Scratch<R>& s, std::int64_t rows, std::int64_t keys) {
  using S = Simd<R, Bytes>;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      auto sum = S::all(0);
      for (std::int64_t d = 0; d < s.dim; d += S::lanes) {
        sum += S::load(s.q + i * s.dim + d) * S::load(s.keys + j * s.dim + d);
      }
      s.scores[i * s.columns + j] = S::sum(sum);
    }
    std::fill(s.scores + i * s.columns + keys, s.scores + (i + 1) * s.columns, R{0});
  }
}

template <class R, int Bytes>
ATTNBENCH_INLINE void few_values(const Scratch<R>& s, std::int64_t rows, std::int64_t keys) {
  using S = Simd<R, Bytes>;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t d = 0; d < s.value_dim; d += S::lanes) {
      auto sum = S::load(s.out + i * s.value_dim + d);
      for (std::int64_t j = 0; j < keys; ++j) {
        sum += s.scores[i * s.columns + j] * S::load(s.values + j * s.value_dim + d);
      }
      S::store(s.out + i * s.value_dim + d, sum);
    }
  }
}

template <class R, int Bytes>
ATTNBENCH_INLINE void take_tile(const SoftmaxSizes& sizes, const std::uint8_t* mask,
                                const Scratch<R>& s, std::int64_t t0, std::int64_t begin,
                                std::int64_t rows, std::int64_t s0, std::int64_t keys) {
  const std::int64_t padded_rows = rounded_rows(rows);
  const bool few = sizes.length <= few_queries;
  if (few) {
    few_scores<R, Bytes>(s, rows, keys);
  } else {
    multiply<R, Bytes, false>(padded_rows, s.columns, sizes.head_dim,
                              {s.q + begin * s.dim, s.dim, 1}, s.keys, s.columns, s.scores,
                              s.columns);
  }
  hide(sizes, mask, t0 + begin, rows, s0, s.columns, s.scores);
  for (std::int64_t i = 0; i < rows; ++i) {
    take_row<R, Bytes>(s.scores + i * s.columns, s.columns, s.greatest[begin + i], s.sum[begin + i],
                       s.out + (begin + i) * s.value_dim, s.value_dim);
  }
  if (few) return few_values<R, Bytes>(s, rows, keys);
  multiply<R, Bytes, true>(padded_rows, s.value_dim, keys, {s.scores, s.columns, 1}, s.values,
                           s.value_dim, s.out + begin * s.value_dim, s.value_dim);
}

template <class T, class R>
ATTNBENCH_INLINE void finish_row(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                                 const Scratch<R>& s, std::int64_t b, std::int64_t h,
                                 std::int64_t t, std::int64_t i) {
  const bool blind = s.sum[i] == 0;
  const R factor = blind ? R{0} : 1 / s.sum[i];
  T* out = arguments.out.at(b, h, t);
  for (std::int64_t d = 0; d < sizes.value_dim; ++d) {
    narrow(factor * s.out[i * s.value_dim + d], out[d]);
  }
  if (arguments.lse == nullptr) return;
  arguments.lse[(b * sizes.heads + h) * sizes.length + t] =
      blind ? std::numeric_limits<R>::infinity()
            : (s.greatest[i] + std::log2(s.sum[i])) * static_cast<R>(ln_of_2);
}

/// One item: up to `rows` queries of one head against all keys they see.
template <class T, int Bytes>
ATTNBENCH_INLINE void forward_item(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                                   const Scratch<Compute<T>>& s, std::int64_t b, std::int64_t h,
                                   std::int64_t t0) {
  using R = Compute<T>;
  const std::int64_t rows = std::min(s.rows, sizes.length - t0);
  const std::int64_t kv = h / (sizes.heads / sizes.kv_heads);
  const std::uint8_t* mask =
      arguments.key_mask == nullptr ? nullptr : arguments.key_mask + b * arguments.mask_stride;
  pack(arguments.q.at(b, h, t0), arguments.q.row_stride, rows, sizes.head_dim,
       static_cast<R>(sizes.scale * log2_of_e), s.q, s.dim);
  std::fill_n(s.q + rows * s.dim, (rounded_rows(rows) - rows) * s.dim, R{0});
  std::fill_n(s.out, rounded_rows(rows) * s.value_dim, R{0});
  std::fill_n(s.greatest, rows, -std::numeric_limits<R>::infinity());
  std::fill_n(s.sum, rows, R{0});

  const std::int64_t last = sizes.last_key(t0 + rows - 1);
  for (std::int64_t s0 = sizes.first_key(t0); s0 <= last; s0 += s.columns) {
    const std::int64_t keys = std::min(s.columns, sizes.key_length - s0);
    const T* k = arguments.k.at(b, kv, s0);
    if (sizes.length <= few_queries) {
      pack(k, arguments.k.row_stride, keys, sizes.head_dim, R{1}, s.keys, s.dim);
    } else {
      pack_transposed(k, arguments.k.row_stride, keys, sizes.head_dim, s.keys, s.columns);
    }
    pack(arguments.v.at(b, kv, s0), arguments.v.row_stride, keys, sizes.value_dim, R{1}, s.values,
         s.value_dim);
    for (std::int64_t begin = 0; begin < rows; begin += query_tile) {
      const std::int64_t count = std::min(query_tile, rows - begin);
      if (sizes.last_key(t0 + begin + count - 1) < s0) continue;
      if (sizes.first_key(t0 + begin) >= s0 + keys) continue;
      take_tile<R, Bytes>(sizes, mask, s, t0, begin, count, s0, keys);
    }
  }
  for (std::int64_t i = 0; i < rows; ++i) finish_row(sizes, arguments, s, b, h, t0 + i, i);
}

template <class T>
void forward_baseline(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                      const Scratch<Compute<T>>& s, std::int64_t b, std::int64_t h,
                      std::int64_t t0) {
  forward_item<T, 16>(sizes, arguments, s, b, h, t0);
}
template <class T>
ATTNBENCH_AVX2 void forward_avx2(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                                 const Scratch<Compute<T>>& s, std::int64_t b, std::int64_t h,
                                 std::int64_t t0) {
  forward_item<T, 32>(sizes, arguments, s, b, h, t0);
}
template <class T>
ATTNBENCH_AVX512 void forward_avx512(const SoftmaxSizes& sizes,
                                     const SoftmaxArguments<T>& arguments,
                                     const Scratch<Compute<T>>& s, std::int64_t b, std::int64_t h,
                                     std::int64_t t0) {
  forward_item<T, 64>(sizes, arguments, s, b, h, t0);
}

template <class R>
std::size_t scratch_bytes(const SoftmaxSizes& sizes, int threads) {
  Workspace count;
  Scratch<R>(count, sizes, threads);
  return count.used();
}

}  // namespace

template <class T>
std::size_t softmax_forward_bytes(const SoftmaxSizes& sizes, int threads) {
  return static_cast<std::size_t>(threads) * scratch_bytes<Compute<T>>(sizes, threads);
}

template <class T>
void softmax_forward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                     ThreadTeam& team, void* workspace, std::size_t workspace_bytes) {
  if (sizes.length == 0) return;
  Workspace space(workspace, workspace_bytes);
  const auto each = static_cast<std::int64_t>(scratch_bytes<Compute<T>>(sizes, team.size()));
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const auto item = pick(forward_baseline<T>, forward_avx2<T>, forward_avx512<T>);
  const std::int64_t rows = item_rows(sizes, team.size());
  const std::int64_t blocks = (sizes.length + rows - 1) / rows;
  const std::int64_t all_heads = sizes.batch * sizes.heads;
  share(team, blocks * all_heads, [&](int worker, std::int64_t index) {
    Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
    const Scratch<Compute<T>> s(own, sizes, team.size());
    // The last queries see the most keys: they go first.
    const std::int64_t block = blocks - 1 - index / all_heads;
    const std::int64_t head = index % all_heads;
    item(sizes, arguments, s, head / sizes.heads, head % sizes.heads, block * rows);
  });
}

#define ATTNBENCH_INSTANTIATE(T)                                                                 \
  template std::size_t softmax_forward_bytes<T>(const SoftmaxSizes&, int);                       \
  template void softmax_forward<T>(const SoftmaxSizes&, const SoftmaxArguments<T>&, ThreadTeam&, \
                                   void*, std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
ATTNBENCH_INSTANTIATE(BFloat16)

}  // namespace attnbench::kernels
