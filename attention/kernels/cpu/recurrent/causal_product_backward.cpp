#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/cpu/recurrent/causal_product_block.hpp"
#include "attention/kernels/cpu/recurrent/recurrence_gradient.hpp"
#include "attention/kernels/cpu/simd/stored.hpp"

namespace attnbench::kernels {
namespace {

/// Some features of one head of the causal product. Normalised, with n_t the sum of weights, z_t
/// that of the keys' features, P = phi(q) / n and delta = -(P . X):
///   dLoss/dphi(q_t) = (X_t + delta_t z_t) / n_t,   dLoss/dphi(k_s) = Z_s + sum_{t>=s} delta_t P_t.
/// With a decay, dLoss/dq_t = A_t C X_t and dLoss/dk_s = Z_s / (A_s C).
template <class Element>
struct ProductGradient {
  using T = Element;
  using R = Compute<T>;
  using Sizes = CausalProductSizes;
  static constexpr std::int64_t carried_rows = 1;

  struct Block : ProductBlock<R> {
    R* later;  ///< [stride]: the sum of delta P over the tokens after the block
    Block(Workspace& space, const Sizes& sizes, std::int64_t tokens)
        : ProductBlock<R>(space, sizes, tokens, true), later(space.take<R>(this->stride)) {}
  };

  Sizes sizes;
  CausalProductArguments<T> arguments;
  CausalProductGradients<T> gradients;
  std::int64_t b, h;

  ProductGradient(const Sizes& whole, const CausalProductArguments<T>& all,
                  const CausalProductGradients<T>& all_gradients, std::int64_t batch,
                  std::int64_t head, std::int64_t first, std::int64_t features)
      : sizes(slice_of(whole, features)),
        arguments(all),
        gradients(all_gradients),
        b(batch),
        h(head) {
    arguments.query.data += first;
    arguments.key.data += first;
    gradients.d_query.data += first;
    gradients.d_key.data += first;
  }
  static Sizes slice_of(Sizes sizes, std::int64_t features) {
    sizes.features = features;
    return sizes;
  }

  const Rows<const T>& keys() const { return arguments.key; }
  const Rows<T>& key_gradient() const { return gradients.d_key; }
  const std::uint8_t* mask() const {
    return arguments.key_mask == nullptr ? nullptr : arguments.key_mask + b * arguments.mask_stride;
  }

  void begin(const Block& block) const { block.forget(); }
  void begin_gradient(const Block& block) const {
    block.forget();
    std::fill_n(block.later, block.stride, R{0});
  }
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

  /// J vectors of features, from f on. elu(x) + 1 has the derivative min(phi, 1).
  template <int Bytes, ProductFeature Feature, bool Decays, int J>
  ATTNBENCH_INLINE void finish_columns(const Block& block, std::int64_t t0, std::int64_t tokens,
                                       const Panels<R>& x, const Panels<R>& z, const R* deltas,
                                       std::int64_t f, std::int64_t column) const {
    using S = Simd<R, Bytes>;
    // The derivative times `factor`, which phi has been multiplied by.
    const auto grad_of = [](typename S::Vector phi, R factor) ATTNBENCH_INLINE_LAMBDA {
      const auto most = S::broadcast(factor);
      if (Feature == ProductFeature::identity) return most;
      return factor < 0 ? S::max(phi, most) : S::min(phi, most);
    };
    const std::uint8_t* const hidden = mask();
    typename S::Vector later[J];
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) later[j] = S::load(block.later + f + j * S::lanes);
    // Copies: for all the compiler knows a store may change what `block` refers to. All panels have
    // as much room.
    const std::int64_t last = tokens - 1;
    const R* weights = block.weights.at(last, column);
    const R* scores = block.scores.at(last, column);
    const R* sums = block.sums.at(last, column);
    const R* grads = x.at(last, f);
    const R* intra_block = z.at(last, column);
    const R* const factors = block.factors;
    const R* const key_factors = block.key_factors;
    T* dq = gradients.d_query.at(b, h, t0 + last) + f;
    T* dk = gradients.d_key.at(b, h, t0 + last) + f;
    const std::int64_t query_stride = gradients.d_query.row_stride;
    const std::int64_t key_stride = gradients.d_key.row_stride;
    const std::int64_t features = sizes.features - f;
    std::int64_t beside[J];
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      beside[j] = block.weights.at(last, column + j * S::lanes) - weights;
    }
    for (std::int64_t t = last; t >= 0; --t) {
      const R factor = factors[t];
      const auto delta = S::broadcast(Decays ? R{0} : deltas[t]);
      const auto real = S::broadcast(hidden != nullptr && hidden[t0 + t] == 0 ? R{0} : R{1});
#pragma GCC unroll 4
      for (int j = 0; j < J; ++j) {
        const std::int64_t at = beside[j];
        if constexpr (Decays) {
          store_columns<T, Bytes, J>(dq + j * S::lanes, S::load(grads + at) * factor, features);
          store_columns<T, Bytes, J>(dk + j * S::lanes,
                                     real * S::load(intra_block + at) * key_factors[t], features);
          continue;
        }
        const auto weight = S::load(weights + at);
        const auto d_weight = S::load(grads + at) + delta * S::load(sums + at);
        later[j] += delta * weight;
        const auto d_score = real * (S::load(intra_block + at) + later[j]);
        const auto score = S::load(scores + at);
        store_columns<T, Bytes, J>(dq + j * S::lanes, d_weight * grad_of(weight, factor), features);
        store_columns<T, Bytes, J>(dk + j * S::lanes, d_score * grad_of(score, 1), features);
      }
      weights -= panel_columns<R>;
      scores -= panel_columns<R>;
      sums -= panel_columns<R>;
      grads -= panel_columns<R>;
      intra_block -= panel_columns<R>;
      dq -= query_stride;
      dk -= key_stride;
    }
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) S::store(block.later + f + j * S::lanes, later[j]);
  }

  template <int Bytes, ProductFeature Feature, bool Decays>
  ATTNBENCH_INLINE void finish_feature(const Block& block, std::int64_t t0, std::int64_t tokens,
                                       const Panels<R>& x, const Panels<R>& z, const R* deltas,
                                       std::int64_t begin, std::int64_t end) const {
    constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
    const std::int64_t last = std::min(end, sizes.features);
    std::int64_t f = begin;
    for (; f + 4 * lanes <= last; f += 4 * lanes) {
      finish_columns<Bytes, Feature, Decays, 4>(block, t0, tokens, x, z, deltas, f, f - begin);
    }
    for (; f < last; f += lanes) {
      finish_columns<Bytes, Feature, Decays, 1>(block, t0, tokens, x, z, deltas, f, f - begin);
    }
  }

  /// The gradients of queries and keys from X and Z, this of features [begin, end) alone.
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
  if (sizes.length == 0 || sizes.features == 0) return;
  Workspace space(workspace, workspace_bytes);
  recurrent_backward<ProductGradient<T>>(
      sizes, team, space,
      [&](std::int64_t b, std::int64_t h, std::int64_t first, std::int64_t features) {
        return ProductGradient<T>(sizes, arguments, gradients, b, h, first, features);
      });
}

#define ATTNBENCH_INSTANTIATE(T)                                                         \
  template std::size_t causal_product_backward_bytes<T>(const CausalProductSizes&, int); \
  template void causal_product_backward<T>(                                              \
      const CausalProductSizes&, const CausalProductArguments<T>&,                       \
      const CausalProductGradients<T>&, ThreadTeam&, void*, std::size_t);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
