#include "attention/kernels/cpu/recurrent/causal_product_block.hpp"

#include <cmath>

#include "attention/kernels/cpu/simd/joined_rows.hpp"

namespace attnbench::kernels {
namespace {

/// phi of J vectors, in place.
template <class R, int Bytes, ProductFeature Feature, int J>
ATTNBENCH_INLINE void to_features(typename Simd<R, Bytes>::Vector (&x)[J]) {
  using S = Simd<R, Bytes>;
  if constexpr (Feature == ProductFeature::elu_plus_one) {
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      const auto below = S::exp2((x[j] < 0 ? x[j] : S::broadcast(0)) * static_cast<R>(log2_of_e));
      x[j] = x[j] > 0 ? x[j] + R{1} : below;
    }
  }
}

/// J vectors of features, from f on, to the panels' columns from `column` on.
template <class R, int Bytes, ProductFeature Feature, bool Decays, bool Backward, int J>
ATTNBENCH_INLINE void product_columns(const ProductBlock<R>& block, const Opened<R>& opened,
                                      std::int64_t f, std::int64_t column) {
  using S = Simd<R, Bytes>;
  typename S::Vector sum[J];
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) sum[j] = S::load(block.sum + f + j * S::lanes);
  // Copies: for all the compiler knows a store may change what `block` refers to.
  const Operand<R> k = opened.keys;
  const Operand<R> q = opened.queries;
  const std::int64_t key_stride = k.stride;
  const std::int64_t query_stride = q.stride;
  const R* key_row = k.data + f;
  const R* query_row = q.data + f;
  const R* const factors = block.factors;
  const R* const key_factors = block.key_factors;
  R* part = block.parts;
  R* scores = block.scores.at(0, column);
  R* weights = block.weights.at(0, column);
  R* sums = Backward ? block.sums.at(0, column) : nullptr;
  std::int64_t beside[J];
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) beside[j] = block.scores.at(0, column + j * S::lanes) - scores;
  for (std::int64_t t = 0; t < opened.tokens; ++t) {
    typename S::Vector score[J];
    typename S::Vector weight[J];
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      score[j] = S::load(key_row + j * S::lanes);
      weight[j] = S::load(query_row + j * S::lanes);
    }
    to_features<R, Bytes, Feature, J>(score);
    to_features<R, Bytes, Feature, J>(weight);
    auto total = S::broadcast(0);
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      const std::int64_t at = beside[j];
      if constexpr (Decays) {
        score[j] *= key_factors[t];
      } else {
        sum[j] += score[j];
        total += weight[j] * sum[j];
      }
      S::store(scores + at, score[j]);
      if constexpr (Backward) weight[j] *= factors[t];
      if constexpr (Backward && !Decays) S::store(sums + at, sum[j]);
      S::store(weights + at, weight[j]);
    }
    if constexpr (!Backward && !Decays) {
      S::store(part, f == 0 ? total : S::load(part) + total);
      part += S::lanes;
    }
    key_row += key_stride;
    query_row += query_stride;
    scores += panel_columns<R>;
    weights += panel_columns<R>;
    if constexpr (Backward) sums += panel_columns<R>;
  }
#pragma GCC unroll 4
  for (int j = 0; j < J; ++j) S::store(block.sum + f + j * S::lanes, sum[j]);
}

template <class R, int Bytes, ProductFeature Feature, bool Decays, bool Backward>
ATTNBENCH_INLINE void product_features(const ProductBlock<R>& block, const Opened<R>& opened,
                                       std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  std::int64_t f = begin;
  for (; f + 4 * lanes <= end; f += 4 * lanes) {
    product_columns<R, Bytes, Feature, Decays, Backward, 4>(block, opened, f, f - begin);
  }
  for (; f < end; f += lanes) {
    product_columns<R, Bytes, Feature, Decays, Backward, 1>(block, opened, f, f - begin);
  }
}

}  // namespace

template <class R, int Bytes, bool Backward>
void weigh_product(const CausalProductSizes& sizes, const ProductBlock<R>& block,
                   const Opened<R>& opened, std::int64_t begin, std::int64_t end) {
  using enum ProductFeature;
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    if (sizes.decays) {
      product_features<R, Bytes, identity, true, Backward>(block, opened, begin, end);
    } else if (sizes.feature == identity) {
      product_features<R, Bytes, identity, false, Backward>(block, opened, begin, end);
    } else {
      product_features<R, Bytes, elu_plus_one, false, Backward>(block, opened, begin, end);
    }
  });
}

template <class R, int Bytes>
std::int64_t open_decays(const Rows<const R>& log_decay, double scale, const ProductBlock<R>& block,
                         const BlockPlace& place) {
  const double least = std::ldexp(1.0, -15 * std::numeric_limits<R>::max_exponent / 16);
  const std::int64_t all = place.tokens;
  R decays[block_tokens];
  for (std::int64_t t = 0; t < all; ++t) decays[t] = *log_decay.at(place.b, place.h, place.t0 + t);
  Apart<Bytes>::call(
      [&]() ATTNBENCH_INLINE_LAMBDA { to_decays<R, Bytes>(decays, all, decays, all); });
  double products[block_tokens];
  double product = products[0] = 1;
  std::int64_t tokens = 1;
  for (; tokens < all; ++tokens) {
    product *= static_cast<double>(decays[tokens]);
    if (!(product >= least)) break;
    products[tokens] = product;
  }
  const double centre = std::ldexp(1.0, -std::ilogb(products[tokens - 1]) / 2);
  for (std::int64_t t = 0; t < tokens; ++t) {
    const double factor = products[t] * centre;
    block.factors[t] = static_cast<R>(factor * scale);
    block.key_factors[t] = static_cast<R>(1 / factor);
  }
  const double before = static_cast<double>(*block.scale) * static_cast<double>(decays[0]);
  std::fill_n(block.decay, block.stride, static_cast<R>(before / centre));
  *block.scale = static_cast<R>(products[tokens - 1] * centre);
  return tokens;
}

template <class R, int Bytes>
void close_product(const CausalProductSizes& sizes, const ProductBlock<R>& block,
                   std::int64_t tokens) {
  if (sizes.decays) return;  // its factors were made when the block was opened
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    sum_rows<R, Bytes>(block.parts, tokens, block.totals);
    for (std::int64_t t = 0; t < tokens; ++t) {
      block.factors[t] = product_factor(sizes, block.totals[t]);
    }
  });
}

#define ATTNBENCH_INSTANTIATE(R, BYTES)                                                           \
  template void weigh_product<R, BYTES, false>(const CausalProductSizes&, const ProductBlock<R>&, \
                                               const Opened<R>&, std::int64_t, std::int64_t);     \
  template void weigh_product<R, BYTES, true>(const CausalProductSizes&, const ProductBlock<R>&,  \
                                              const Opened<R>&, std::int64_t, std::int64_t);      \
  template std::int64_t open_decays<R, BYTES>(const Rows<const R>&, double,                       \
                                              const ProductBlock<R>&, const BlockPlace&);         \
  template void close_product<R, BYTES>(const CausalProductSizes&, const ProductBlock<R>&,        \
                                        std::int64_t);
ATTNBENCH_FOR_REALS(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
