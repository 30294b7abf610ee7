// The prefix pool by chunks: a piece of the sequence at a time, its chunks side by side.
#include <vector>

#include "attention/algorithms/prefix_pool/chunks.hpp"

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;

Tensor forward(const Operand& query, Query kind, const Operand& scores, const Tensor& values,
               std::int64_t chunk, Carry& carry) {
  const auto type = carry.sum.scalar_type();
  const Tensor y = at::empty(values.sizes(), values.options());
  for (const Piece& piece : pieces_of(values.size(2), chunk, kChunksInPiece)) {
    const Chunks chunks = cut(query.part(piece, type), kind, scores.part(piece, type),
                              part_of(values, piece, type), piece.alone(), carry);
    put_part(y, piece, outputs(chunks));
  }
  return y;
}

struct Chunked {
  struct Form {
    Query kind = Query::logits;
    std::int64_t chunk = 1;
  };
  static c10::IValue pack(const Form& form) {
    return std::vector<std::int64_t>{static_cast<std::int64_t>(form.kind), form.chunk};
  }
  static Form unpack(const c10::IValue& value) {
    const auto parts = value.toIntVector();
    return {static_cast<Query>(parts[0]), parts[1]};
  }

  static Tensor forward(const Operands& all, const Form& form) {
    Carry carry = flat_empty_carry(all.key, all.values);
    return prefix_pool::forward(all.query, form.kind, all.key, all.values, form.chunk, carry);
  }

  static torch::autograd::variable_list backward(const Operands& all, const Form& form,
                                                 const Tensor& upstream) {
    const Operand &query = all.query, &scores = all.key;
    const Tensor& values = all.values;
    const auto pieces = pieces_of(values.size(2), form.chunk, kChunksInPiece);
    const auto type = compute_type(values.scalar_type());
    const auto cut_at = [&](const Tensor& queries, const Piece& piece, Carry& carry) {
      return cut(queries, form.kind, scores.part(piece, type), part_of(values, piece, type),
                 piece.alone(), carry);
    };
    // Forward for the carry at each piece's left edge, then backward, recomputing the chunks.
    Carry carry = flat_empty_carry(scores, values);
    Tensor sum = at::zeros_like(carry.sum);
    Tensor normaliser = at::zeros_like(carry.normaliser);
    std::vector<Carry> starts;
    for (const Piece& piece : pieces) {
      starts.push_back(carry);
      if (&piece != &pieces.back()) cut_at({}, piece, carry);
    }
    const Tensor d_query = at::empty_like(query.whole), d_scores = at::empty_like(scores.whole);
    const Tensor d_values = at::empty_like(values);
    for (std::size_t i = pieces.size(); i-- > 0;) {
      const Chunks chunks = cut_at(query.part(pieces[i], type), pieces[i], starts[i]);
      const Tensor g = part_of(upstream, pieces[i], type).reshape(chunks.v.sizes());
      ChunkGradients to = gradients(chunks, g);
      sweep_left(chunks, to, sum, normaliser);
      query.put_part_gradient(d_query, pieces[i], to.query);
      scores.put_part_gradient(d_scores, pieces[i], to.k);
      put_part(d_values, pieces[i], to.v);
    }
    return {d_query, d_scores, d_values};
  }
};

}  // namespace

Tensor chunked(const Operand& query, Query kind, const Operand& scores, const Tensor& values,
               std::int64_t chunk, Carry* carry) {
  return for_query_heads(query, scores, values, carry,
                         [&](const Operand& each, const Tensor& of_each, Carry* past) -> Tensor {
                           if (!past) {
                             return Recorded<Chunked>::run({query, each, of_each}, {kind, chunk});
                           }
                           const at::NoGradGuard no_grad;
                           Carry flat = past->flat();
                           const Carry place = flat;
                           const Tensor y = forward(query, kind, each, of_each, chunk, flat);
                           place.maximum.copy_(flat.maximum);
                           place.normaliser.copy_(flat.normaliser);
                           place.sum.copy_(flat.sum);
                           return y;
                         });
}

}  // namespace attnbench::prefix_pool
