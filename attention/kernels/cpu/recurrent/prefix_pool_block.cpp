#include "attention/kernels/cpu/recurrent/prefix_pool_block.hpp"

#include "attention/kernels/cpu/simd/joined_rows.hpp"

namespace attnbench::kernels {
namespace {

/// Maxima of J vectors of latents, from l on; whether none rises too far after the first token, or
/// is first set there.
template <class R, int Bytes, int J>
ATTNBENCH_INLINE bool raise_columns(const PoolBlock<R>& block, Operand<R> k, std::int64_t tokens,
                                    std::int64_t l) {
  using S = Simd<R, Bytes>;
  const R* row = k.data + l;
  typename S::Vector most[2][J];  // of every second token: one maximum would wait for the other
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) most[0][j] = most[1][j] = S::load(row + j * S::lanes);
  std::int64_t t = 1;
  for (; t + 2 <= tokens; t += 2) {
#pragma GCC unroll 2
    for (auto& each : most) {
      row += k.stride;
#pragma GCC unroll 4
      for (int j = 0; j < J; ++j) each[j] = S::max(each[j], S::load(row + j * S::lanes));
    }
  }
  if (t < tokens) {
    row += k.stride;
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) most[0][j] = S::max(most[0][j], S::load(row + j * S::lanes));
  }
  auto far = S::broadcast(0);
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) {
    const std::int64_t at = l + j * S::lanes;
    const auto first = S::max(S::load(block.maximum + at), k.factor * S::load(k.data + at));
    const auto top = S::max(first, k.factor * S::max(most[0][j], most[1][j]));
    S::store(block.next + at, top);
    const auto rise = top == first ? S::broadcast(0) : top - first;
    far += rise <= pool_range<R> ? S::broadcast(0) : rise;  // a NaN stays a NaN
  }
  return S::sum(far) == 0;
}

/// Sets block.next to the maxima after `tokens` tokens. Whether one maximum a latent serves them.
template <class R, int Bytes>
ATTNBENCH_INLINE bool raise(const PoolBlock<R>& block, const Operand<R>& k, std::int64_t tokens) {
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  bool near = true;
  std::int64_t l = 0;
  for (; l + 4 * lanes <= block.stride; l += 4 * lanes) {
    near &= raise_columns<R, Bytes, 4>(block, k, tokens, l);
  }
  for (; l < block.stride; l += lanes) {
    near &= raise_columns<R, Bytes, 1>(block, k, tokens, l);
  }
  return near;
}

/// The most of `tokens` tokens that one maximum a latent serves.
template <class R, int Bytes>
ATTNBENCH_INLINE std::int64_t fitting(const PoolBlock<R>& block, const Operand<R>& k,
                                      std::int64_t tokens) {
  while (!raise<R, Bytes>(block, k, tokens) && tokens > 1) tokens /= 2;
  return tokens;
}

/// Each query's greatest logit, with the maximum of the latent added where z decides.
template <class R, int Bytes, bool WithZ>
ATTNBENCH_INLINE void find_tops(const PoolBlock<R>& block, Operand<R> q, std::int64_t tokens) {
  using S = Simd<R, Bytes>;
  R* const parts = block.parts;
  const R* const next = block.next;
  const std::int64_t stride = block.stride;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const R* const row = q.data + t * q.stride;
    const auto logit = [&](std::int64_t l) ATTNBENCH_INLINE_LAMBDA {
      if constexpr (WithZ) return q.factor * S::load(row + l) + S::load(next + l);
      return S::load(row + l);
    };
    typename S::Vector most[4];  // apart: one maximum would wait for the other
#pragma GCC unroll 4
    for (auto& each : most) each = S::broadcast(-std::numeric_limits<R>::infinity());
    std::int64_t l = 0;
    for (; l + 4 * S::lanes <= stride; l += 4 * S::lanes) {
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) most[j] = S::max(most[j], logit(l + j * S::lanes));
    }
    for (; l < stride; l += S::lanes) most[0] = S::max(most[0], logit(l));
    S::store(parts + t * S::lanes, S::max(S::max(most[0], most[1]), S::max(most[2], most[3])));
  }
  greatest_of_rows<R, Bytes>(parts, tokens, block.tops);
  if constexpr (!WithZ) {
    for (std::int64_t t = 0; t < tokens; ++t) block.tops[t] *= q.factor;
  }
}

/// J vectors of latents, from l on: exponentials, normalisers and the weights over them, to the
/// panels' columns from `column` on.
template <class R, int Bytes, PoolQuery Kind, bool Backward, int J>
ATTNBENCH_INLINE void pool_columns(const PoolBlock<R>& block, const Opened<R>& opened,
                                   std::int64_t l, std::int64_t column) {
  using S = Simd<R, Bytes>;
  constexpr R infinity = std::numeric_limits<R>::infinity();
  constexpr bool with_z = Kind == PoolQuery::logits_plus_z;
  typename S::Vector base[J];
  typename S::Vector sum[J];
  typename S::Vector shift[J];
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) {
    const std::int64_t at = l + j * S::lanes;
    const auto after = S::load(block.next + at);
    const auto unseen = after == -infinity;
    // A latent that has seen nothing must not compute infinity minus infinity, nor divide by 0;
    // what its memory of zeros is weighed by does not matter.
    base[j] = unseen ? S::broadcast(0) : after;
    shift[j] = after;
    const auto decay = S::exp2(S::load(block.maximum + at) - base[j]);
    S::store(block.decay + at, decay);
    S::store(block.maximum + at, after);
    sum[j] = unseen ? S::broadcast(with_z ? 0 : 1) : decay * S::load(block.normaliser + at);
  }
  // Copies: for all the compiler knows a store may change what `block` refers to.
  const Operand<R> k = opened.keys;
  const Operand<R> q = opened.queries;
  const auto on_keys = S::broadcast(k.factor);
  const auto on_queries = S::broadcast(q.factor);
  const std::int64_t key_stride = k.stride;
  const std::int64_t query_stride = q.stride;
  const R* key_row = k.data + l;
  const R* query_row = q.data + l;
  const R* const tops = block.tops;
  const R* const factors = block.factors;
  R* part = block.parts;
  R* scores = block.scores.at(0, column);
  R* weights = block.weights.at(0, column);
  R* sums = Backward ? block.sums.at(0, column) : nullptr;
  std::int64_t beside[J];
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) beside[j] = block.scores.at(0, column + j * S::lanes) - scores;
  for (std::int64_t t = 0; t < opened.tokens; ++t) {
    typename S::Vector score[J];
    typename S::Vector share[J];
    // Where nothing was seen: not infinity minus infinity.
    const R top = Kind == PoolQuery::weights || tops[t] == -infinity ? R{0} : tops[t];
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      score[j] = S::exp2(on_keys * S::load(key_row + j * S::lanes) - base[j]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      share[j] = on_queries * S::load(query_row + j * S::lanes);
      if constexpr (with_z) share[j] += shift[j];
      if constexpr (Kind != PoolQuery::weights) share[j] = S::exp2(share[j] - top);
    }
    auto total = S::broadcast(0);
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      const std::int64_t at = beside[j];
      S::store(scores + at, score[j]);
      sum[j] += score[j];
      if constexpr (Backward) {
        share[j] *= factors[t];
        S::store(sums + at, sum[j]);
      }
      if constexpr (with_z) {
        S::store(weights + at, share[j]);
        share[j] *= sum[j];
      } else {
        S::store(weights + at, share[j] * S::reciprocal(sum[j]));
      }
      total += share[j];
    }
    if constexpr (Kind != PoolQuery::weights && !Backward) {
      S::store(part, l == 0 ? total : S::load(part) + total);
      part += S::lanes;
    }
    key_row += key_stride;
    query_row += query_stride;
    scores += panel_columns<R>;
    weights += panel_columns<R>;
    if constexpr (Backward) sums += panel_columns<R>;
  }
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) {
    const std::int64_t at = l + j * S::lanes;
    S::store(block.normaliser + at, shift[j] == -infinity ? S::broadcast(0) : sum[j]);
  }
}

template <class R, int Bytes, PoolQuery Kind, bool Backward>
ATTNBENCH_INLINE void weigh_kind(const PoolBlock<R>& block, const Opened<R>& opened,
                                 std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  std::int64_t l = begin;
  for (; l + 4 * lanes <= end; l += 4 * lanes) {
    pool_columns<R, Bytes, Kind, Backward, 4>(block, opened, l, l - begin);
  }
  for (; l < end; l += lanes) {
    pool_columns<R, Bytes, Kind, Backward, 1>(block, opened, l, l - begin);
  }
}

}  // namespace

template <class R, int Bytes>
void measure_pool(PoolQuery kind, const PoolBlock<R>& block, Opened<R>& opened) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    opened.tokens = fitting<R, Bytes>(block, opened.keys, opened.tokens);
    if (kind == PoolQuery::logits) {
      find_tops<R, Bytes, false>(block, opened.queries, opened.tokens);
    } else if (kind == PoolQuery::logits_plus_z) {
      find_tops<R, Bytes, true>(block, opened.queries, opened.tokens);
    }
  });
}

template <class R, int Bytes, bool Backward>
void weigh_pool(PoolQuery kind, const PoolBlock<R>& block, const Opened<R>& opened,
                std::int64_t begin, std::int64_t end) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    switch (kind) {
      case PoolQuery::weights:
        weigh_kind<R, Bytes, PoolQuery::weights, Backward>(block, opened, begin, end);
        break;
      case PoolQuery::logits:
        weigh_kind<R, Bytes, PoolQuery::logits, Backward>(block, opened, begin, end);
        break;
      case PoolQuery::logits_plus_z:
        weigh_kind<R, Bytes, PoolQuery::logits_plus_z, Backward>(block, opened, begin, end);
        break;
    }
  });
}

template <class R, int Bytes>
void close_pool(PoolQuery kind, const PoolBlock<R>& block, std::int64_t tokens) {
  if (kind == PoolQuery::weights) {
    std::fill_n(block.totals, tokens, R{1});
    std::fill_n(block.factors, tokens, R{1});
    return;
  }
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    sum_rows<R, Bytes>(block.parts, tokens, block.totals);
    for (std::int64_t t = 0; t < tokens; ++t) {
      block.factors[t] = block.totals[t] > 0 ? R{1} / block.totals[t] : R{0};
    }
  });
}

#define ATTNBENCH_INSTANTIATE(R, BYTES)                                                       \
  template void measure_pool<R, BYTES>(PoolQuery, const PoolBlock<R>&, Opened<R>&);           \
  template void weigh_pool<R, BYTES, false>(PoolQuery, const PoolBlock<R>&, const Opened<R>&, \
                                            std::int64_t, std::int64_t);                      \
  template void weigh_pool<R, BYTES, true>(PoolQuery, const PoolBlock<R>&, const Opened<R>&,  \
                                           std::int64_t, std::int64_t);                       \
  template void close_pool<R, BYTES>(PoolQuery, const PoolBlock<R>&, std::int64_t);
ATTNBENCH_FOR_REALS(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
