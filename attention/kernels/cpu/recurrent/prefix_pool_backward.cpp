#include <limits>

#include "attention/kernels/cpu/recurrent/gradient_family.hpp"
#include "attention/kernels/cpu/recurrent/prefix_pool_block.hpp"
#include "attention/kernels/prefix_pool.hpp"

namespace attnbench::kernels {
namespace {

template <class T>
using PoolSlice =
    GradientFamily<T, PoolBlock<Compute<T>>, PrefixPoolSizes, PrefixPoolArguments<T>,
                   PrefixPoolGradients<T>, &PrefixPoolSizes::latents,
                   &PrefixPoolArguments<T>::scores, &PrefixPoolGradients<T>::d_scores>;

/// Some latents of one head of the prefix pool. With a the normalisers, E = exp(k - m) and
/// P = p / a, the weights:
///   dLoss/dp = X / a;   dk_s = E_s (Z_s - sum_{t>=s} Y_t),   Y = P dLoss/dp,
/// or Y = P sum_l p dLoss/dp where p holds the normalisers, whose own part in dk cancels the rest.
template <class Element>
struct PoolGradient : PoolSlice<Element> {
  using T = Element;
  using R = Compute<T>;
  using typename PoolSlice<T>::Block;
  using typename PoolSlice<T>::Sizes;
  using PoolSlice<T>::PoolSlice, PoolSlice<T>::sizes, PoolSlice<T>::arguments;
  using PoolSlice<T>::b, PoolSlice<T>::h, PoolSlice<T>::mask;
  static constexpr std::int64_t carried_rows = 2;

  void save(const Block& block, R* to) const {
    std::copy_n(block.maximum, block.stride, to);
    std::copy_n(block.normaliser, block.stride, to + block.stride);
  }
  void restore(const Block& block, const R* from) const {
    std::copy_n(from, block.stride, block.maximum);
    std::copy_n(from + block.stride, block.stride, block.normaliser);
  }

  template <int Bytes>
  Opened<R> open(const Block& block, std::int64_t t, std::int64_t tokens) const {
    return open_pool<T, Bytes>(sizes, arguments, block, mask(), {b, h, t, tokens});
  }
  /// The same, when `kept` holds the sums of these tokens.
  template <int Bytes>
  Opened<R> open_again(const Block& block, const TokenSums<R>& kept, std::int64_t t,
                       std::int64_t tokens) const {
    const R* const tops = sizes.query == PoolQuery::weights ? nullptr : kept.top + t;
    return open_pool<T, Bytes>(sizes, arguments, block, mask(), {b, h, t, tokens}, tops);
  }
  template <int Bytes, bool Backward>
  void weigh(const Block& block, const Opened<R>& opened, std::int64_t begin,
             std::int64_t end) const {
    weigh_pool<R, Bytes, Backward>(sizes.query, block, opened, begin, end);
  }
  template <int Bytes>
  void keep_sums(const Block& block, const TokenSums<R>& to, std::int64_t t,
                 std::int64_t tokens) const {
    if (sizes.query == PoolQuery::weights) return;
    close_pool<R, Bytes>(sizes.query, block, tokens);
    std::copy_n(block.tops, tokens, to.top + t);
    std::copy_n(block.totals, tokens, to.total + t);
  }

  /// What a token's weights are to be multiplied by, and sum_l p dLoss/dp, from all slices' sums.
  template <int Bytes>
  void merge(const TokenSums<R>& all, const TokenSums<R>& own, std::int64_t t, std::int64_t tokens,
             R* factors, R* deltas) const {
    if (sizes.query == PoolQuery::weights) {
      std::fill_n(factors, tokens, R{1});
      std::fill_n(deltas, tokens, R{0});
      return;
    }
    Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
      using S = Simd<R, Bytes>;
      for (std::int64_t i = 0; i < tokens; i += S::lanes) {
        auto top = S::load(all.top + t + i);
        for (std::int64_t slice = 1; slice < all.slices; ++slice) {
          top = S::max(top, S::load(all.of(slice).top + t + i));
        }
        // Where nothing was seen: not infinity minus infinity.
        top = top == -std::numeric_limits<R>::infinity() ? S::broadcast(0) : top;
        auto total = S::broadcast(0);
        auto dot = S::broadcast(0);
        for (std::int64_t slice = 0; slice < all.slices; ++slice) {
          const TokenSums<R> part = all.of(slice);
          const auto scale = S::exp2(S::load(part.top + t + i) - top);
          total += scale * S::load(part.total + t + i);
          dot += scale * S::load(part.dot + t + i);
        }
        const auto scale = S::exp2(S::load(own.top + t + i) - top);
        S::store(factors + i, total > 0 ? scale / total : S::broadcast(0));
        S::store(deltas + i, total > 0 ? dot / total : S::broadcast(0));
      }
    });
  }

  template <int Bytes, PoolQuery Kind>
  ATTNBENCH_INLINE void finish_kind(const Block& block, std::int64_t t0, std::int64_t tokens,
                                    const Panels<R>& x, const Panels<R>& z, const R* deltas,
                                    std::int64_t begin, std::int64_t end) const {
    using S = Simd<R, Bytes>;
    using V = typename S::Vector;
    const auto scale = S::broadcast(static_cast<R>(sizes.scale));
    const auto formulas = [=](std::int64_t t) ATTNBENCH_INLINE_LAMBDA {
      const auto delta = S::broadcast(deltas[t]);
      return
          [=](const TokenNumbers<R>& at, V& later, V& d_query, V& d_score) ATTNBENCH_INLINE_LAMBDA {
            const auto weight = S::load(at.weight);
            const auto grad = S::load(at.x);
            const auto sum = S::load(at.sum);
            if constexpr (Kind == PoolQuery::weights) {
              d_query = grad * S::reciprocal(sum);
              later += weight * d_query;
            } else {
              d_query = scale * weight * (grad - sum * delta);
              later += weight * (Kind == PoolQuery::logits ? grad * S::reciprocal(sum) : delta);
            }
            d_score = scale * S::load(at.score) * (S::load(at.z) - later);
          };
    };
    this->template finish_with<Bytes, true>(block, t0, tokens, x, z, begin, end, formulas);
  }

  /// See GradientFamily::finish_with.
  template <int Bytes>
  void finish(const Block& block, std::int64_t t0, std::int64_t tokens, const Panels<R>& x,
              const Panels<R>& z, const R* deltas, std::int64_t begin, std::int64_t end) const {
    Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
      switch (sizes.query) {
        case PoolQuery::weights:
          finish_kind<Bytes, PoolQuery::weights>(block, t0, tokens, x, z, deltas, begin, end);
          break;
        case PoolQuery::logits:
          finish_kind<Bytes, PoolQuery::logits>(block, t0, tokens, x, z, deltas, begin, end);
          break;
        case PoolQuery::logits_plus_z:
          finish_kind<Bytes, PoolQuery::logits_plus_z>(block, t0, tokens, x, z, deltas, begin, end);
          break;
      }
    });
  }
};

}  // namespace

template <class T>
std::size_t prefix_pool_backward_bytes(const PrefixPoolSizes& sizes, int threads) {
  return recurrent_backward_bytes<PoolGradient<T>>(sizes, threads);
}

template <class T>
void prefix_pool_backward(const PrefixPoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                          const PrefixPoolGradients<T>& gradients, ThreadTeam& team,
                          void* workspace, std::size_t workspace_bytes) {
  recurrent_backward<PoolGradient<T>>(sizes, arguments, gradients, team, workspace,
                                      workspace_bytes);
}

#define ATTNBENCH_INSTANTIATE(T)                                                               \
  template std::size_t prefix_pool_backward_bytes<T>(const PrefixPoolSizes&, int);             \
  template void prefix_pool_backward<T>(const PrefixPoolSizes&, const PrefixPoolArguments<T>&, \
                                        const PrefixPoolGradients<T>&, ThreadTeam&, void*,     \
                                        std::size_t);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
