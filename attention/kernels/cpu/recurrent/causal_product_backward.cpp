#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/cpu/recurrent/causal_product_block.hpp"
#include "attention/kernels/cpu/recurrent/gradient_family.hpp"

namespace attnbench::kernels {
namespace {

template <class T>
using ProductSlice =
    GradientFamily<T, ProductBlock<Compute<T>>, CausalProductSizes, CausalProductArguments<T>,
                   CausalProductGradients<T>, &CausalProductSizes::features,
                   &CausalProductArguments<T>::key, &CausalProductGradients<T>::d_key>;

/// Some features of one head of the causal product. Normalised, with n_t the sum of weights, z_t
/// that of the keys' features, P = phi(q) / n and delta = -(P . X):
///   dLoss/dphi(q_t) = (X_t + delta_t z_t) / n_t,   dLoss/dphi(k_s) = Z_s + sum_{t>=s} delta_t P_t.
/// With a decay, dLoss/dq_t = A_t C X_t and dLoss/dk_s = Z_s / (A_s C).
template <class Element>
struct ProductGradient : ProductSlice<Element> {
  using T = Element;
  using R = Compute<T>;
  using typename ProductSlice<T>::Block;
  using typename ProductSlice<T>::Sizes;
  using ProductSlice<T>::ProductSlice, ProductSlice<T>::sizes, ProductSlice<T>::arguments;
  using ProductSlice<T>::b, ProductSlice<T>::h, ProductSlice<T>::mask;
  static constexpr std::int64_t carried_rows = 1;

  void save(const Block& block, R* to) const {
    if (sizes.decays) {
      *to = *block.scale;
    } else {
      std::copy_n(block.sum, block.stride, to);
    }
  }
  void restore(const Block& block, const R* from) const {
    if (sizes.decays) {
      *block.scale = *from;
    } else {
      std::copy_n(from, block.stride, block.sum);
    }
  }

  template <int Bytes>
  Opened<R> open(const Block& block, std::int64_t t, std::int64_t tokens) const {
    return open_product<T, Bytes>(sizes, arguments, block, mask(), {b, h, t, tokens});
  }
  template <int Bytes>
  Opened<R> open_again(const Block& block, const TokenSums<R>&, std::int64_t t,
                       std::int64_t tokens) const {
    return open<Bytes>(block, t, tokens);
  }
  template <int Bytes, bool Backward>
  void weigh(const Block& block, const Opened<R>& opened, std::int64_t begin,
             std::int64_t end) const {
    weigh_product<R, Bytes, Backward>(sizes, block, opened, begin, end);
  }
  template <int Bytes>
  void keep_sums(const Block& block, const TokenSums<R>& to, std::int64_t t,
                 std::int64_t tokens) const {
    if (sizes.decays) return;
    close_product<R, Bytes>(sizes, block, tokens);
    std::copy_n(block.totals, tokens, to.total + t);
  }

  /// 1 / n and delta of each token, from all slices' sums. With a decay the factors are made.
  template <int Bytes>
  void merge(const TokenSums<R>& all, const TokenSums<R>&, std::int64_t t, std::int64_t tokens,
             R* factors, R* deltas) const {
    if (sizes.decays) return;
    for (std::int64_t i = 0; i < tokens; ++i) {
      R total = 0, dot = 0;
      for (std::int64_t slice = 0; slice < all.slices; ++slice) {
        total += all.of(slice).total[t + i];
        dot += all.of(slice).dot[t + i];
      }
      factors[i] = product_factor(sizes, total);
      deltas[i] = sizes.normalised ? -dot * factors[i] : R{0};
    }
  }

  /// elu(x) + 1 has the derivative min(phi, 1).
  template <int Bytes, ProductFeature Feature, bool Decays>
  ATTNBENCH_INLINE void finish_feature(const Block& block, std::int64_t t0, std::int64_t tokens,
                                       const Panels<R>& x, const Panels<R>& z, const R* deltas,
                                       std::int64_t begin, std::int64_t end) const {
    using S = Simd<R, Bytes>;
    using V = typename S::Vector;
    const std::uint8_t* const hidden = mask();
    const R* const factors = block.factors;
    const R* const key_factors = block.key_factors;
    const auto formulas = [=](std::int64_t t) ATTNBENCH_INLINE_LAMBDA {
      const R factor = factors[t];
      const R key_factor = Decays ? key_factors[t] : R{1};
      const auto delta = S::broadcast(Decays ? R{0} : deltas[t]);
      const auto real = S::broadcast(hidden != nullptr && hidden[t0 + t] == 0 ? R{0} : R{1});
      return [=](const TokenNumbers<R>& at, V& later, V& d_query, V& d_key)
                 ATTNBENCH_INLINE_LAMBDA {
                   if constexpr (Decays) {
                     d_query = S::load(at.x) * factor;
                     d_key = real * S::load(at.z) * key_factor;
                     return;
                   }
                   // The derivative times `factor`, which phi has been multiplied by.
                   const auto grad_of = [](V phi, R by) ATTNBENCH_INLINE_LAMBDA {
                     const auto most = S::broadcast(by);
                     if (Feature == ProductFeature::identity) return most;
                     return by < 0 ? S::max(phi, most) : S::min(phi, most);
                   };
                   const auto weight = S::load(at.weight);
                   later += delta * weight;
                   d_query = (S::load(at.x) + delta * S::load(at.sum)) * grad_of(weight, factor);
                   d_key = real * (S::load(at.z) + later) * grad_of(S::load(at.score), 1);
                 };
    };
    this->template finish_with<Bytes, false>(block, t0, tokens, x, z, begin, end, formulas);
  }

  /// See GradientFamily::finish_with.
  template <int Bytes>
  void finish(const Block& block, std::int64_t t0, std::int64_t tokens, const Panels<R>& x,
              const Panels<R>& z, const R* deltas, std::int64_t begin, std::int64_t end) const {
    using enum ProductFeature;
    Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
      if (sizes.decays) {
        finish_feature<Bytes, identity, true>(block, t0, tokens, x, z, deltas, begin, end);
      } else if (sizes.feature == identity) {
        finish_feature<Bytes, identity, false>(block, t0, tokens, x, z, deltas, begin, end);
      } else {
        finish_feature<Bytes, elu_plus_one, false>(block, t0, tokens, x, z, deltas, begin, end);
      }
    });
  }
};

}  // namespace

template <class T>
std::size_t causal_product_backward_bytes(const CausalProductSizes& sizes, int threads) {
  return recurrent_backward_bytes<ProductGradient<T>>(sizes, threads);
}

template <class T>
void causal_product_backward(const CausalProductSizes& sizes,
                             const CausalProductArguments<T>& arguments,
                             const CausalProductGradients<T>& gradients, ThreadTeam& team,
                             void* workspace, std::size_t workspace_bytes) {
  recurrent_backward<ProductGradient<T>>(sizes, arguments, gradients, team, workspace,
                                         workspace_bytes);
}

#define ATTNBENCH_INSTANTIATE(T)                                                         \
  template std::size_t causal_product_backward_bytes<T>(const CausalProductSizes&, int); \
  template void causal_product_backward<T>(                                              \
      const CausalProductSizes&, const CausalProductArguments<T>&,                       \
      const CausalProductGradients<T>&, ThreadTeam&, void*, std::size_t);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
