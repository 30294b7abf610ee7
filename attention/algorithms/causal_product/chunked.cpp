// The causal product by chunks. In a chunk with rows A, B, C and the state S at its left edge,
//   O = A S + tril(A B^T) C,
// and with the upstream gradient G and R = sum of a_t g_t^T over all later tokens,
//   dA = G S^T + tril(G C^T) B,  dB = C R^T + tril(G C^T)^T A,  dC = B R + tril(A B^T)^T G.
#include <array>
#include <vector>

#include "attention/algorithms/causal_product/causal_product.hpp"

namespace attnbench::causal_product {
namespace {

using at::Tensor;

/// Chunks side by side: [M, c, .], M = N * chunks, and the state at their left edges [M, F, W].
struct Chunks {
  Tensor a, b, c, left;
};

/// `past` [N, F, W] is advanced to the piece's right edge.
Chunks cut(const Operand& x, const Operand& y, const Tensor& c, const Form& form,
           const Piece& piece, Tensor& past) {
  const auto type = past.scalar_type();
  const auto of = [&](const Operand& each) {
    return each.part(piece, type).reshape({-1, piece.size, each.width()});
  };
  Chunks chunks{feature_of(of(x), form.feature),
                feature_of(of(y), form.feature),
                columns_of(of(c), form),
                {}};
  const std::array<std::int64_t, 2> rows = {past.size(0), piece.count};
  const Tensor sums = at::bmm(chunks.b.transpose(1, 2), chunks.c).unflatten(0, rows);
  past = carry_over(sums, {}, past, false);
  chunks.left = sums.flatten(0, 1);
  return chunks;
}

Tensor weights_of(const Chunks& x) { return at::bmm(x.a, x.b.transpose(1, 2)).tril_(); }

Tensor sums_of(const Chunks& x, const Tensor& weights) {
  return at::bmm(weights, x.c).baddbmm_(x.a, x.left);
}

Tensor empty_past(const Operand& x, const Tensor& c, const Form& form) {
  return at::zeros({c.size(0) * c.size(1), x.width(), c.size(3) + (form.normalised ? 1 : 0)},
                   c.options().dtype(compute_type(c.scalar_type())));
}

Tensor forward(const Operand& x, const Operand& y, const Tensor& c, const Form& form,
               std::int64_t chunk, Tensor& past) {
  const Tensor out = at::empty(c.sizes(), c.options());
  for (const Piece& piece : pieces_of(c.size(2), chunk, kChunksInPiece)) {
    const Chunks chunks = cut(x, y, c, form, piece, past);
    put_part(out, piece, result_of(sums_of(chunks, weights_of(chunks)), form));
  }
  return out;
}

/// The gradients of one piece's a, b and c; `right` [N, F, W] is R at its right edge and is updated
/// to its left edge.
Chunks gradients(const Chunks& x, const Tensor& upstream, const Form& form, Tensor& right) {
  const Tensor weights = weights_of(x);
  const Tensor g = sums_gradient(sums_of(x, weights), upstream, form);
  const Tensor scores = at::bmm(g, x.c.transpose(1, 2)).tril_();
  const auto n = right.size(0);
  const std::array<std::int64_t, 2> rows = {n, x.a.size(0) / n};
  const Tensor each = at::bmm(x.a.transpose(1, 2), g).unflatten(0, rows);
  right = carry_over(each, {}, right, true);
  const Tensor later = each.flatten(0, 1);
  return {at::bmm(g, x.left.transpose(1, 2)).baddbmm_(scores, x.b),
          at::bmm(x.c, later.transpose(1, 2)).baddbmm_(scores.transpose(1, 2), x.a),
          at::bmm(x.b, later).baddbmm_(weights.transpose(1, 2), g),
          {}};
}

struct Chunked {
  struct Form {
    causal_product::Form product;
    std::int64_t chunk = 1;
  };
  static c10::IValue pack(const Form& form) {
    return c10::ivalue::Tuple::create({form.product.packed(), form.chunk});
  }
  static Form unpack(const c10::IValue& value) {
    const auto& parts = value.toTupleRef().elements();
    return {causal_product::Form::unpacked(parts[0]), parts[1].toInt()};
  }

  static Tensor forward(const Operands& all, const Form& form) {
    Tensor past = empty_past(all.query, all.values, form.product);
    return causal_product::forward(all.query, all.key, all.values, form.product, form.chunk, past);
  }

  static torch::autograd::variable_list backward(const Operands& all, const Form& given,
                                                 const Tensor& upstream) {
    const auto& [x, y, c] = all;
    const causal_product::Form& form = given.product;
    const auto pieces = pieces_of(c.size(2), given.chunk, kChunksInPiece);
    // Forward for the state at each piece's left edge, then backward, recomputing the chunks.
    Tensor past = empty_past(x, c, form);
    Tensor right = at::zeros_like(past);
    std::vector<Tensor> starts;
    for (const Piece& piece : pieces) {
      starts.push_back(past);
      if (&piece != &pieces.back()) cut(x, y, c, form, piece, past);
    }
    const Tensor dx = at::empty_like(x.whole), dy = at::empty_like(y.whole), dc = at::empty_like(c);
    for (std::size_t i = pieces.size(); i-- > 0;) {
      const Chunks chunks = cut(x, y, c, form, pieces[i], starts[i]);
      const Tensor g = part_of(upstream, pieces[i], past.scalar_type())
                           .reshape({chunks.c.size(0), chunks.c.size(1), c.size(3)});
      const Chunks to = gradients(chunks, g, form, right);
      x.put_part_gradient(dx, pieces[i], feature_gradient(chunks.a, to.a, form.feature));
      y.put_part_gradient(dy, pieces[i], feature_gradient(chunks.b, to.b, form.feature));
      put_part(dc, pieces[i], to.c.narrow(2, 0, c.size(3)).contiguous());
    }
    return {dx, dy, dc};
  }
};

}  // namespace

Tensor chunked(const Operand& x, const Operand& y, const Tensor& c, const Form& form,
               std::int64_t chunk, Tensor state) {
  if (!state.defined()) return Recorded<Chunked>::run({x, y, c}, {form, chunk});
  const at::NoGradGuard no_grad;
  Tensor past = state.flatten(0, 1);
  const Tensor out = forward(x, y, c, form, chunk, past);
  state.copy_(past.view(state.sizes()));
  return out;
}

}  // namespace attnbench::causal_product
