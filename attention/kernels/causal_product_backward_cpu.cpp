#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/causal_product_block.hpp"
#include "attention/kernels/recurrence_gradient.hpp"

namespace attnbench::kernels {
namespace {

/// One head of the causal product. Normalised, with n_t the sum of weights and z_t that of the
/// keys' features, the upstream is g / n, and the sum's own gradient is gamma = -(g . o) / n, which
/// is -(P . X) / n:   X_t += gamma_t z_t,   Z_s += sum_{t>=s} gamma_t P_t.
template <class T>
struct ProductGradient {
  using R = Compute<T>;
  using Sizes = CausalProductSizes;
  static constexpr std::int64_t carried_rows = 1;

  struct Block : ProductBlock<R> {
    R* later;  ///< [stride]: the sum of gamma P over the tokens after the block
    Block(Workspace& space, const Sizes& sizes, std::int64_t tokens)
        : ProductBlock<R>(space, sizes, tokens, true), later(space.take<R>(this->stride)) {}
  };

  const Sizes& sizes;
  const CausalProductArguments<T>& arguments;
  const CausalProductGradients<T>& gradients;
  std::int64_t b, h;

  const std::uint8_t* mask() const {
    return arguments.key_mask == nullptr ? nullptr : arguments.key_mask + b * arguments.mask_stride;
  }

  void begin(const Block& block) const { block.forget(); }
  void begin_gradient(const Block& block) const { std::fill_n(block.later, block.stride, R{0}); }
  void save(const Block& block, R* to) const { std::copy_n(block.total, block.stride, to); }
  void restore(const Block& block, const R* from) const {
    std::copy_n(from, block.stride, block.total);
  }

  template <int Bytes>
  ATTNBENCH_INLINE std::int64_t prepare(const Block& block, std::int64_t t0,
                                        std::int64_t loaded) const {
    load_product<T, Bytes>(sizes, arguments, block, b, h, mask(), t0, loaded);
    return loaded;
  }
  ATTNBENCH_INLINE void load_values(std::int64_t t0, std::int64_t tokens, R* to,
                                    std::int64_t stride) const {
    kernels::load_values(arguments.values, mask(), {b, h, 0, sizes.value_dim}, t0, tokens, to,
                         stride);
  }
  ATTNBENCH_INLINE void load_upstream(const Block& block, std::int64_t t0, std::int64_t tokens,
                                      R* to, std::int64_t stride) const {
    kernels::load_values(gradients.d_out, nullptr, {b, h, 0, sizes.value_dim}, t0, tokens, to,
                         stride);
    if (!sizes.normalised) return;
    for (std::int64_t t = 0; t < tokens; ++t) {
      for (std::int64_t d = 0; d < sizes.value_dim; ++d) to[t * stride + d] *= block.factor(t);
    }
  }
  ATTNBENCH_INLINE void store_value_gradient(std::int64_t t0, std::int64_t tokens,
                                             const R* turned) const {
    store_turned(turned, tokens, sizes.value_dim, gradients.d_values, b, h, t0);
  }

  /// dLoss/dx from phi(x) and dLoss/dphi: elu(x) + 1 has the slope min(phi, 1).
  template <int Bytes>
  ATTNBENCH_INLINE void through_feature(R* gradient, const R* phi, std::int64_t stride) const {
    using S = Simd<R, Bytes>;
    if (sizes.feature == ProductFeature::identity) return;
    for (std::int64_t f = 0; f < stride; f += S::lanes) {
      const auto value = S::load(phi + f);
      S::store(gradient + f, S::load(gradient + f) * (value < 1 ? value : S::all(1)));
    }
  }

  /// Adds what X and Z get by the sum of token t's weights.
  template <int Bytes>
  ATTNBENCH_INLINE void through_sum(const Block& block, std::int64_t t, R* dp, R* de,
                                    std::int64_t stride) const {
    using S = Simd<R, Bytes>;
    const R* const weights = block.weights + t * stride;
    auto dot = S::all(0);
    for (std::int64_t f = 0; f < stride; f += S::lanes) {
      dot += S::load(weights + f) * S::load(dp + f);
    }
    const R gamma = -S::sum(dot) * block.factor(t);
    for (std::int64_t f = 0; f < stride; f += S::lanes) {
      S::store(dp + f, S::load(dp + f) + gamma * S::load(block.totals + t * stride + f));
      const auto later = S::load(block.later + f) + gamma * S::load(weights + f);
      S::store(block.later + f, later);
      S::store(de + f, S::load(de + f) + later);
    }
  }

  template <int Bytes>
  ATTNBENCH_INLINE void finish(const Block& block, std::int64_t t0, std::int64_t tokens, R* dp,
                               R* de, std::int64_t stride) const {
    for (std::int64_t t = tokens - 1; t >= 0; --t) {
      const std::int64_t row = t * stride;
      if (sizes.normalised) through_sum<Bytes>(block, t, dp + row, de + row, stride);
      through_feature<Bytes>(dp + row, block.weights + row, stride);
      through_feature<Bytes>(de + row, block.scores + row, stride);
      if (mask() != nullptr && mask()[t0 + t] == 0) std::fill_n(de + row, stride, R{0});
    }
    store_rows(dp, stride, tokens, sizes.features, R{1}, gradients.d_query, b, h, t0);
    store_rows(de, stride, tokens, sizes.features, R{1}, gradients.d_key, b, h, t0);
  }
};

}  // namespace

template <class T>
std::size_t causal_product_backward_bytes(const CausalProductSizes& sizes, int threads) {
  return static_cast<std::size_t>(threads) * gradient_scratch_bytes<ProductGradient<T>>(sizes);
}

template <class T>
void causal_product_backward(const CausalProductSizes& sizes,
                             const CausalProductArguments<T>& arguments,
                             const CausalProductGradients<T>& gradients, ThreadTeam& team,
                             void* workspace, std::size_t workspace_bytes) {
  if (sizes.length == 0 || sizes.features == 0) return;
  Workspace space(workspace, workspace_bytes);
  recurrent_backward<ProductGradient<T>>(sizes, team, space, [&](std::int64_t b, std::int64_t h) {
    return ProductGradient<T>{sizes, arguments, gradients, b, h};
  });
}

#define ATTNBENCH_INSTANTIATE(T)                                                         \
  template std::size_t causal_product_backward_bytes<T>(const CausalProductSizes&, int); \
  template void causal_product_backward<T>(                                              \
      const CausalProductSizes&, const CausalProductArguments<T>&,                       \
      const CausalProductGradients<T>&, ThreadTeam&, void*, std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
ATTNBENCH_INSTANTIATE(BFloat16)

}  // namespace attnbench::kernels
