#include "attention/kernels/prefix_pool.hpp"
#include "attention/kernels/prefix_pool_block.hpp"
#include "attention/kernels/recurrence_gradient.hpp"

namespace attnbench::kernels {
namespace {

/// One head of the prefix pool. With a the normalisers, P = p / a and E = exp(k - m):
///   dp = X / a;   dk = E (Z - sum_{t>=s} Y_t),   Y = P dp,
/// or Y = P sum_l p dp where p holds the normalisers, whose own part in dk cancels the rest.
template <class T>
struct PoolGradient {
  using R = Compute<T>;
  using Sizes = PrefixPoolSizes;
  static constexpr std::int64_t carried_rows = 2;

  struct Block : PoolBlock<R> {
    R* later;  ///< [stride]: the sum of Y over the tokens after the block, as it sees them
    Block(Workspace& space, const Sizes& sizes, std::int64_t tokens)
        : PoolBlock<R>(space, sizes, tokens, true), later(space.take<R>(this->stride)) {}
  };

  const Sizes& sizes;
  const PrefixPoolArguments<T>& arguments;
  const PrefixPoolGradients<T>& gradients;
  std::int64_t b, h;

  const std::uint8_t* mask() const {
    return arguments.key_mask == nullptr ? nullptr : arguments.key_mask + b * arguments.mask_stride;
  }
  R scale() const { return static_cast<R>(sizes.scale); }

  void begin(const Block& block) const { block.forget(); }
  void begin_gradient(const Block& block) const { std::fill_n(block.later, block.stride, R{0}); }
  void save(const Block& block, R* to) const {
    std::copy_n(block.maximum, block.stride, to);
    std::copy_n(block.normaliser, block.stride, to + block.stride);
  }
  void restore(const Block& block, const R* from) const {
    std::copy_n(from, block.stride, block.maximum);
    std::copy_n(from + block.stride, block.stride, block.normaliser);
  }

  template <int Bytes>
  ATTNBENCH_INLINE std::int64_t prepare(const Block& block, std::int64_t t0,
                                        std::int64_t loaded) const {
    load_block<T, Bytes>(sizes, arguments, block, b, h, mask(), t0, loaded);
    const std::int64_t tokens = fitting<R, Bytes>(block, loaded);
    weigh<R, Bytes>(block, sizes.query, tokens);
    return tokens;
  }
  ATTNBENCH_INLINE void load_values(std::int64_t t0, std::int64_t tokens, R* to,
                                    std::int64_t stride) const {
    kernels::load_values(arguments.values, mask(), {b, h, 0, sizes.value_dim}, t0, tokens, to,
                         stride);
  }
  ATTNBENCH_INLINE void load_upstream(const Block&, std::int64_t t0, std::int64_t tokens, R* to,
                                      std::int64_t stride) const {
    kernels::load_values(gradients.d_out, nullptr, {b, h, 0, sizes.value_dim}, t0, tokens, to,
                         stride);
  }
  ATTNBENCH_INLINE void store_value_gradient(std::int64_t t0, std::int64_t tokens,
                                             const R* turned) const {
    store_turned(turned, tokens, sizes.value_dim, gradients.d_values, b, h, t0);
  }

  /// From X in `row` to dLoss/dquery there, and to Y in `sums`.
  template <int Bytes>
  ATTNBENCH_INLINE void finish_query(R* row, R* sums, const R* weights, std::int64_t stride) const {
    using S = Simd<R, Bytes>;
    auto total = S::all(0);
    for (std::int64_t l = 0; l < stride; l += S::lanes) {
      const auto sum = S::load(sums + l);
      const auto dp = sum > 0 ? S::load(row + l) / sum : S::all(0);
      S::store(row + l, dp);
      total += S::load(weights + l) * sum * dp;
    }
    if (sizes.query == PoolQuery::weights) {
      for (std::int64_t l = 0; l < stride; l += S::lanes) {
        S::store(sums + l, S::load(weights + l) * S::load(row + l));
      }
      return;
    }
    const R delta = S::sum(total);
    const bool inside = sizes.query == PoolQuery::logits_and_normaliser;
    for (std::int64_t l = 0; l < stride; l += S::lanes) {
      const auto weight = S::load(weights + l);
      const auto dp = S::load(row + l);
      S::store(row + l, weight * S::load(sums + l) * (dp - delta));
      S::store(sums + l, weight * (inside ? S::all(delta) : dp));
    }
  }

  template <int Bytes>
  ATTNBENCH_INLINE void finish(const Block& block, std::int64_t t0, std::int64_t tokens, R* dp,
                               R* de, std::int64_t stride) const {
    using S = Simd<R, Bytes>;
    for (std::int64_t t = tokens - 1; t >= 0; --t) {
      R* const y = block.sums + t * stride;
      finish_query<Bytes>(dp + t * stride, y, block.weights + t * stride, stride);
      for (std::int64_t l = 0; l < stride; l += S::lanes) {
        const auto later = S::load(block.later + l) + S::load(y + l);
        S::store(block.later + l, later);
        R* const z = de + t * stride + l;
        S::store(z, S::load(block.scores + t * stride + l) * (S::load(z) - later));
      }
    }
    for (std::int64_t l = 0; l < stride; l += S::lanes) {
      S::store(block.later + l, S::load(block.later + l) * S::load(block.fade + l));
    }
    const R on_query = sizes.query == PoolQuery::weights ? R{1} : scale();
    store_rows(dp, stride, tokens, sizes.latents, on_query, gradients.d_query, b, h, t0);
    store_rows(de, stride, tokens, sizes.latents, scale(), gradients.d_scores, b, h, t0);
  }
};

}  // namespace

template <class T>
std::size_t prefix_pool_backward_bytes(const PrefixPoolSizes& sizes, int threads) {
  return static_cast<std::size_t>(threads) * gradient_scratch_bytes<PoolGradient<T>>(sizes);
}

template <class T>
void prefix_pool_backward(const PrefixPoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                          const PrefixPoolGradients<T>& gradients, ThreadTeam& team,
                          void* workspace, std::size_t workspace_bytes) {
  if (sizes.length == 0 || sizes.latents == 0) return;
  Workspace space(workspace, workspace_bytes);
  recurrent_backward<PoolGradient<T>>(sizes, team, space, [&](std::int64_t b, std::int64_t h) {
    return PoolGradient<T>{sizes, arguments, gradients, b, h};
  });
}

#define ATTNBENCH_INSTANTIATE(T)                                                               \
  template std::size_t prefix_pool_backward_bytes<T>(const PrefixPoolSizes&, int);             \
  template void prefix_pool_backward<T>(const PrefixPoolSizes&, const PrefixPoolArguments<T>&, \
                                        const PrefixPoolGradients<T>&, ThreadTeam&, void*,     \
                                        std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
ATTNBENCH_INSTANTIATE(BFloat16)

}  // namespace attnbench::kernels
