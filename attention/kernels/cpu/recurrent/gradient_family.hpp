// What the gradients of the recurrent families have in common: a slice of a head, and the way back
// through a block's tokens from X and Z of recurrence_gradient.hpp to the gradients of queries and
// keys. A family adds what it carries, how the sums of slices meet, and one token's formulas.
#pragma once

#include "attention/kernels/cpu/recurrent/recurrence_gradient.hpp"
#include "attention/kernels/cpu/simd/stored.hpp"

namespace attnbench::kernels {

/// Where the numbers of some columns of one token lie.
template <class R>
struct TokenNumbers {
  const R *weight, *score, *sum;  ///< as the family's block has them
  const R *x, *z;
};

/// Some features or latents of one head. `rows`, `keys` and `key_gradients` are the members of
/// sizes, arguments and gradients that a family calls its own names.
template <class Element, class TokenBlock, class SizesOf, class Arguments, class Gradients,
          auto rows, auto keys_of, auto key_gradients>
struct GradientFamily {
  using T = Element;
  using R = Compute<T>;
  using Sizes = SizesOf;

  struct Block : TokenBlock {
    R* later;  ///< [stride]: the family's sum over the tokens after the block, as it sees them
    Block(Workspace& space, const Sizes& sizes, std::int64_t tokens)
        : TokenBlock(space, sizes, tokens, true), later(space.take<R>(this->stride)) {}
  };

  Sizes sizes;
  Arguments arguments;
  Gradients gradients;
  std::int64_t b, h;

  GradientFamily(const Sizes& whole, const Arguments& all, const Gradients& all_gradients,
                 std::int64_t batch, std::int64_t head, std::int64_t first, std::int64_t columns)
      : sizes(slice_of(whole, columns)),
        arguments(all),
        gradients(all_gradients),
        b(batch),
        h(head) {
    arguments.query.data += first;
    (arguments.*keys_of).data += first;
    gradients.d_query.data += first;
    (gradients.*key_gradients).data += first;
  }
  static Sizes slice_of(Sizes sizes, std::int64_t columns) {
    sizes.*rows = columns;
    return sizes;
  }

  const Rows<const T>& keys() const { return arguments.*keys_of; }
  const Rows<T>& key_gradient() const { return gradients.*key_gradients; }
  const std::uint8_t* mask() const {
    return arguments.key_mask == nullptr ? nullptr : arguments.key_mask + b * arguments.mask_stride;
  }

  void begin(const Block& block) const { block.forget(); }
  void begin_gradient(const Block& block) const {
    block.forget();
    std::fill_n(block.later, block.stride, R{0});
  }

  /// J vectors of columns, from c on, last token first. `formulas(t)` gives what makes of a token's
  /// numbers its gradients of query and key, and goes on with `later`. `Fades`: what came later is
  /// to be seen as the tokens before the block see it.
  template <int Bytes, int J, bool Fades, class Formulas>
  ATTNBENCH_INLINE void finish_columns(const Block& block, std::int64_t t0, std::int64_t tokens,
                                       const Panels<R>& x, const Panels<R>& z, std::int64_t c,
                                       std::int64_t column, const Formulas& formulas) const {
    using S = Simd<R, Bytes>;
    typename S::Vector later[J];
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) later[j] = S::load(block.later + c + j * S::lanes);
    // Copies: for all the compiler knows a store may change what `block` refers to. All panels have
    // as much room.
    const std::int64_t last = tokens - 1;
    const R* weights = block.weights.at(last, column);
    const R* scores = block.scores.at(last, column);
    const R* sums = block.sums.at(last, column);
    const R* xs = x.at(last, c);
    const R* zs = z.at(last, column);
    T* dq = gradients.d_query.at(b, h, t0 + last) + c;
    T* dk = key_gradient().at(b, h, t0 + last) + c;
    const std::int64_t query_stride = gradients.d_query.row_stride;
    const std::int64_t key_stride = key_gradient().row_stride;
    const std::int64_t columns = sizes.*rows - c;
    std::int64_t beside[J];
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      beside[j] = block.weights.at(last, column + j * S::lanes) - weights;
    }
    for (std::int64_t t = last; t >= 0; --t) {
      const auto formula = formulas(t);
#pragma GCC unroll 4
      for (int j = 0; j < J; ++j) {
        const std::int64_t at = beside[j];
        typename S::Vector d_query, d_key;
        formula({weights + at, scores + at, sums + at, xs + at, zs + at}, later[j], d_query, d_key);
        store_columns<T, Bytes, J>(dq + j * S::lanes, d_query, columns);
        store_columns<T, Bytes, J>(dk + j * S::lanes, d_key, columns);
      }
      weights -= panel_columns<R>;
      scores -= panel_columns<R>;
      sums -= panel_columns<R>;
      xs -= panel_columns<R>;
      zs -= panel_columns<R>;
      dq -= query_stride;
      dk -= key_stride;
    }
#pragma GCC unroll 4
    for (int j = 0; j < J; ++j) {
      const std::int64_t at = c + j * S::lanes;
      S::store(block.later + at, Fades ? later[j] * S::load(block.decay + at) : later[j]);
    }
  }

  /// The gradients of queries and keys from X and Z, those of columns [begin, end) alone.
  template <int Bytes, bool Fades, class Formulas>
  ATTNBENCH_INLINE void finish_with(const Block& block, std::int64_t t0, std::int64_t tokens,
                                    const Panels<R>& x, const Panels<R>& z, std::int64_t begin,
                                    std::int64_t end, const Formulas& formulas) const {
    constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
    const std::int64_t last = std::min(end, sizes.*rows);
    std::int64_t c = begin;
    for (; c + 4 * lanes <= last; c += 4 * lanes) {
      finish_columns<Bytes, 4, Fades>(block, t0, tokens, x, z, c, c - begin, formulas);
    }
    for (; c < last; c += lanes) {
      finish_columns<Bytes, 1, Fades>(block, t0, tokens, x, z, c, c - begin, formulas);
    }
  }
};

}  // namespace attnbench::kernels
