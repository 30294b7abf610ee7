// How a block of queries reads the running memory: a u with a = softmax(c u), c their coordinates
// along the bases, u the mean's.
#pragma once

#include "attention/kernels/cpu/lavo/lavo_parts.hpp"
#include "attention/kernels/cpu/product/fetching_product.hpp"

namespace attnbench::kernels {

/// Makes of c in s.logits what a product with the bases takes, a u times the sum of the weights,
/// and sets s.factors to 1 / that sum. Rows of u are `u_stride` apart, 0 where all queries read one
/// mean; logits are factor c u.
template <class R, int Bytes>
ATTNBENCH_INLINE void weigh_memory(const PackedBases<R>& bases, const MemoryScratch<R>& s,
                                   const R* u, std::int64_t u_stride, R factor,
                                   std::int64_t tokens) {
  using S = Simd<R, Bytes>;
  constexpr R none = -std::numeric_limits<R>::infinity();
  const std::int64_t rows = bases.rows;
  const auto over = [&](const auto& body) ATTNBENCH_INLINE_LAMBDA {
    in_runs<4>(rows / S::lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
      constexpr int N = decltype(vectors)::value;
      R* c = s.logits + first * S::lanes;
      const R* mean = u + first * S::lanes;
      const R* const fence = bases.fence + first * S::lanes;
      R* lanes = s.lanes;
      for (std::int64_t t = 0; t < tokens; ++t) {
        body(c, mean, fence, lanes, t, std::integral_constant<int, N>{});
        c += rows;
        mean += u_stride;
        lanes += S::lanes;
      }
    });
  };
  std::fill_n(s.lanes, memory_tokens * S::lanes, none);
  over([&](const R* c, const R* mean, const R* fence, R* lanes, std::int64_t,
           auto vectors) ATTNBENCH_INLINE_LAMBDA {
    auto top = S::load(lanes);
#pragma GCC unroll 4
    for (int j = 0; j < decltype(vectors)::value; ++j) {
      const std::int64_t at = j * S::lanes;
      top = S::max(top, factor * S::load(c + at) * S::load(mean + at) + S::load(fence + at));
    }
    S::store(lanes, top);
  });
  find_tops<R, Bytes>(s.lanes, memory_tokens, s.tops);
  std::fill_n(s.lanes, memory_tokens * S::lanes, R{0});
  const R* const tops = s.tops;
  over([&](R* c, const R* mean, const R* fence, R* lanes, std::int64_t t,
           auto vectors) ATTNBENCH_INLINE_LAMBDA {
    auto sum = S::load(lanes);
    const R top = tops[t];
#pragma GCC unroll 4
    for (int j = 0; j < decltype(vectors)::value; ++j) {
      const std::int64_t at = j * S::lanes;
      const auto here = S::load(mean + at);
      const auto weight = S::exp2(factor * S::load(c + at) * here + S::load(fence + at) - top);
      S::store(c + at, weight * here);
      sum += weight;
    }
    S::store(lanes, sum);
  });
  sum_rows<R, Bytes>(s.lanes, memory_tokens, s.factors);
  for (std::int64_t t = 0; t < memory_tokens; t += S::lanes) {
    const auto sum = S::load(s.factors + t);
    S::store(s.factors + t, sum > 0 ? R{1} / sum : S::broadcast(0));
  }
}

/// Results of a block from the weighed s.logits.
template <class T, int Bytes>
ATTNBENCH_INLINE void put_memory(const MemoryCall<T>& call, const MemoryScratch<Compute<T>>& s,
                                 const BlockPlace& place, bool empty, SpreadPrefetch& prefetch) {
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const auto& bases = call.shared.bases;
  const std::int64_t rows = whole_units(place.tokens);
  FetchingProduct<R> product{rows,
                             bases.width,
                             sizes.bases,
                             {s.logits, bases.rows, 1},
                             bases.across_of(place.h),
                             bases.width,
                             nullptr,
                             0,
                             s.out,
                             bases.width,
                             nullptr,
                             s.factors};
  if constexpr (std::is_same_v<T, R>) {
    if (rows == place.tokens && bases.width == sizes.head_dim) {
      product.to = call.in.out.at(place.b, place.h, place.t0);
      product.to_stride = call.in.out.row_stride;
      if (sizes.averaged) {
        // share own + read / 2 = (2 share sum own + sum read) / (2 sum)
        const R share = empty && sizes.alone ? R{2} : R{1};
        product.from = call.in.tokens.at(place.b, place.h, place.t0);
        product.from_stride = call.in.tokens.row_stride;
        product.decays = s.own;
        for (std::int64_t t = 0; t < place.tokens; ++t) {
          s.own[t] = share / s.factors[t];
          s.factors[t] /= 2;
        }
      }
      return product.template run<Bytes>(prefetch);
    }
  }
  product.template run<Bytes>(prefetch);
  store_block(call, s, place.b, place.h, place.t0, place.tokens, empty);
}

}  // namespace attnbench::kernels
