// Inputs of the recurrent forms: tokens as they are, or features of them computed in parts, so that
// no [T, S] array of features is ever in memory; and the autograd node of such a form.
#pragma once

#include <cstdint>
#include <utility>

#include "attention/algorithms/tokens/tokens.hpp"

namespace attnbench {

/// Products of the numbers of a token, whose dot products are polynomials of x.y. square: all
/// x_i x_j, i <= j, for (x.y)^2. taylor2: 1, x and square, scaled for 1 + z + z^2 / 2 with z = x.y
/// / sqrt(D), of which no sum is below 1/2.
enum class Expansion { none, square, taylor2 };

/// A map of tokens x [B, H, t, D]. By `omega` to scale x . omega_i, minus |scale x|^2 / 2 if
/// `half_square`: the logarithm of a positive random feature (Choromanski et al. 2021, lemma 1). It
/// has no gradient. Or by `expansion`, which leaves the others out; a token whose first number is
/// -inf is hidden: all its features are 0.
struct Features {
  at::Tensor omega;  ///< [S, D], or [H, S, D] for one map per head; undefined = x itself
  double scale = 1;
  bool half_square = false;
  at::Tensor hidden;  ///< [B, 1, T, 1], true where the result is -inf; undefined = nowhere
  Expansion expansion = Expansion::none;

  /// Whether the features are not the tokens themselves.
  bool maps() const { return omega.defined() || expansion != Expansion::none; }
  /// The number of features of a token of D numbers.
  std::int64_t count(std::int64_t dim) const;
  /// Tokens from `begin` on, x [B, H, t, D], to [B, H, t, S]; plain tensor operations.
  at::Tensor of(const at::Tensor& x, std::int64_t begin = 0) const;
  /// dLoss/dx from dLoss/dresult, which is 0 at hidden tokens.
  at::Tensor gradient(const at::Tensor& x, const at::Tensor& d_result) const;
  c10::IValue packed() const;  ///< for an autograd context
  static Features unpacked(const c10::IValue& value);
};

/// One input of a form, [B, H, T, D], and the map applied to its tokens.
struct Operand {
  Operand(at::Tensor tokens, Features map = {})  // NOLINT(google-explicit-constructor)
      : whole(std::move(tokens)), features(std::move(map)) {}

  at::Tensor whole;
  Features features;

  /// S, or D without features.
  std::int64_t width() const { return features.count(whole.size(3)); }
  /// The whole input, [B, H, T, S] in `type`, with gradients by autograd.
  at::Tensor all(at::ScalarType type) const { return features.of(whole.to(type)); }
  /// The piece's tokens, as part_of and rows_of give them. Their gradients are written into
  /// `d_whole`, of the shape of `whole`.
  at::Tensor part(const Piece& piece, at::ScalarType type) const;
  at::Tensor rows(std::int64_t begin, std::int64_t count, at::ScalarType type) const;
  void put_part_gradient(const at::Tensor& d_whole, const Piece& piece,
                         const at::Tensor& d_part) const;
  void put_rows_gradient(const at::Tensor& d_whole, std::int64_t begin,
                         const at::Tensor& d_rows) const;
};

/// The inputs of a recurrent form: queries, keys (or scores) and values [B, H, T, w].
struct Operands {
  Operand query, key;
  at::Tensor values;
};

/// A form with a gradient of its own as one autograd node, which keeps the inputs alone. F has
///   Form, pack(form), unpack(IValue)     the parameters of a call
///   forward(operands, form)              the output
///   backward(operands, form, upstream)   the gradients of query, key and values
template <class F>
struct Recorded : torch::autograd::Function<Recorded<F>> {
  using Context = torch::autograd::AutogradContext;
  using Tensors = torch::autograd::variable_list;

  static at::Tensor run(const Operands& all, const typename F::Form& form) {
    return Recorded::apply(all.query.whole, all.key.whole, all.values, all, form);
  }

  static at::Tensor forward(Context* context, const at::Tensor& query, const at::Tensor& key,
                            const at::Tensor& values, const Operands& all,
                            const typename F::Form& form) {
    context->save_for_backward({query, key, values});
    context->saved_data["query"] = all.query.features.packed();
    context->saved_data["key"] = all.key.features.packed();
    context->saved_data["form"] = F::pack(form);
    return F::forward(all, form);
  }

  static Tensors backward(Context* context, const Tensors& upstream) {
    const auto saved = context->get_saved_variables();
    auto& data = context->saved_data;
    const Operands all{{saved[0], Features::unpacked(data["query"])},
                       {saved[1], Features::unpacked(data["key"])},
                       saved[2]};
    Tensors gradients = F::backward(all, F::unpack(data["form"]), upstream[0]);
    gradients.resize(5);  // none for the operands and the form
    return gradients;
  }
};

}  // namespace attnbench
