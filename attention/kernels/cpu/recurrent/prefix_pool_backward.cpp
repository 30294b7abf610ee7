#include <limits>

#include "attention/kernels/cpu/recurrent/prefix_pool_block.hpp"
#include "attention/kernels/cpu/recurrent/recurrence_gradient.hpp"
#include "attention/kernels/cpu/simd/stored.hpp"
#include "attention/kernels/prefix_pool.hpp"

namespace attnbench::kernels {
namespace {

/// Some latents of one head of the prefix pool. With a the normalisers, E = exp(k - m) and
/// P = p / a, the weights:
///   dLoss/dp = X / a;   dk_s = E_s (Z_s - sum_{t>=s} Y_t),   Y = P dLoss/dp,
/// or Y = P sum_l p dLoss/dp where p holds the normalisers, whose own part in dk cancels the rest.
template <class Element>
struct PoolGradient {
  using T = Element;
  using R = Compute<T>;
  using Sizes = PrefixPoolSizes;
  static constexpr std::int64_t carried_rows = 2;

  struct Block : PoolBlock<R> {
    R* later;  ///< [stride]: the sum of Y over the tokens after the block, as it sees them
    Block(Workspace& space, const Sizes& sizes, std::int64_t tokens)
        : PoolBlock<R>(space, sizes, tokens, true), later(space.take<R>(this->stride)) {}
  };

  Sizes sizes;
  PrefixPoolArguments<T> arguments;
  PrefixPoolGradients<T> gradients;
  std::int64_t b, h;

  PoolGradient(const Sizes& whole, const PrefixPoolArguments<T>& all,
               const PrefixPoolGradients<T>& all_gradients, std::int64_t batch, std::int64_t head,
               std::int64_t first, std::int64_t latents)
      : sizes(slice_of(whole, latents)),
        arguments(all),
        gradients(all_gradients),
        b(batch),
        h(head) {
    arguments.query.data += first;
    arguments.scores.data += first;
    gradients.d_query.data += first;
    gradients.d_scores.data += first;
  }
  static Sizes slice_of(Sizes sizes, std::int64_t latents) {
    sizes.latents = latents;
    return sizes;
  }

  const Rows<const T>& keys() const { return arguments.scores; }
  const Rows<T>& key_gradient() const { return gradients.d_scores; }
  const std::uint8_t* mask() const {
    return arguments.key_mask == nullptr ? nullptr : arguments.key_mask + b * arguments.mask_stride;
  }

  void begin(const Block& block) const { block.forget(); }
  void begin_gradient(const Block& block) const {
    block.forget();
    std::fill_n(block.later, block.stride, R{0});
  }
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

  /// J vectors of latents, from l on.
  template <int Bytes, PoolQuery Kind, int J>
  ATTNBENCH_INLINE void finish_columns(const Block& block, std::int64_t t0, std::int64_t tokens,
                                       const Panels<R>& x, const Panels<R>& z, const R* deltas,
                                       std::int64_t l, std::int64_t column) const {
    using S = Simd<R, Bytes>;
    const auto scale = S::broadcast(static_cast<R>(sizes.scale));
    typename S::Vector later[J];
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) later[j] = S::load(block.later + l + j * S::lanes);
    // Copies: for all the compiler knows a store may change what `block` refers to. All panels have
    // as much room.
    const std::int64_t last = tokens - 1;
    const R* weights = block.weights.at(last, column);
    const R* sums = block.sums.at(last, column);
    const R* scores = block.scores.at(last, column);
    const R* grads = x.at(last, l);
    const R* intra_block = z.at(last, column);
    T* dq = gradients.d_query.at(b, h, t0 + last) + l;
    T* dk = gradients.d_scores.at(b, h, t0 + last) + l;
    const std::int64_t query_stride = gradients.d_query.row_stride;
    const std::int64_t key_stride = gradients.d_scores.row_stride;
    const std::int64_t latents = sizes.latents - l;
    std::int64_t beside[J];
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      beside[j] = block.weights.at(last, column + j * S::lanes) - weights;
    }
    for (std::int64_t t = last; t >= 0; --t) {
      const auto delta = S::broadcast(deltas[t]);
#pragma GCC unroll 4
      for (int j = 0; j < J; ++j) {
        const std::int64_t at = beside[j];
        const auto weight = S::load(weights + at);
        const auto grad = S::load(grads + at);
        const auto sum = S::load(sums + at);
        typename S::Vector d_query;
        if constexpr (Kind == PoolQuery::weights) {
          d_query = grad * S::reciprocal(sum);
          later[j] += weight * d_query;
        } else {
          d_query = scale * weight * (grad - sum * delta);
          later[j] += weight * (Kind == PoolQuery::logits ? grad * S::reciprocal(sum) : delta);
        }
        const auto d_score = scale * S::load(scores + at) * (S::load(intra_block + at) - later[j]);
        store_columns<T, Bytes, J>(dq + j * S::lanes, d_query, latents);
        store_columns<T, Bytes, J>(dk + j * S::lanes, d_score, latents);
      }
      weights -= panel_columns<R>;
      sums -= panel_columns<R>;
      scores -= panel_columns<R>;
      grads -= panel_columns<R>;
      intra_block -= panel_columns<R>;
      dq -= query_stride;
      dk -= key_stride;
    }
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      const std::int64_t at = l + j * S::lanes;
      S::store(block.later + at, later[j] * S::load(block.decay + at));
    }
  }

  template <int Bytes, PoolQuery Kind>
  ATTNBENCH_INLINE void finish_kind(const Block& block, std::int64_t t0, std::int64_t tokens,
                                    const Panels<R>& x, const Panels<R>& z, const R* deltas,
                                    std::int64_t begin, std::int64_t end) const {
    constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
    const std::int64_t last = std::min(end, sizes.latents);
    std::int64_t l = begin;
    for (; l + 4 * lanes <= last; l += 4 * lanes) {
      finish_columns<Bytes, Kind, 4>(block, t0, tokens, x, z, deltas, l, l - begin);
    }
    for (; l < last; l += lanes) {
      finish_columns<Bytes, Kind, 1>(block, t0, tokens, x, z, deltas, l, l - begin);
    }
  }

  /// The gradients of queries and scores from X and Z, this of latents [begin, end) alone.
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
  if (sizes.length == 0 || sizes.latents == 0) return;
  Workspace space(workspace, workspace_bytes);
  recurrent_backward<PoolGradient<T>>(
      sizes, team, space,
      [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t latents) {
        return PoolGradient<T>(sizes, arguments, gradients, b, h, first, latents);
      });
}

#define ATTNBENCH_INSTANTIATE(T)                                                               \
  template std::size_t prefix_pool_backward_bytes<T>(const PrefixPoolSizes&, int);             \
  template void prefix_pool_backward<T>(const PrefixPoolSizes&, const PrefixPoolArguments<T>&, \
                                        const PrefixPoolGradients<T>&, ThreadTeam&, void*,     \
                                        std::size_t);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
