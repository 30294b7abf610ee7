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

class ChunkedFunction : public torch::autograd::Function<ChunkedFunction> {
 public:
  static Tensor forward(torch::autograd::AutogradContext* context, const Tensor& query,
                        const Tensor& scores, const Tensor& values, const Features& queried,
                        const Features& scored, std::int64_t kind, std::int64_t chunk) {
    context->save_for_backward({query, scores, values});
    context->saved_data["queried"] = queried.packed();
    context->saved_data["scored"] = scored.packed();
    context->saved_data["kind"] = kind;
    context->saved_data["chunk"] = chunk;
    const Operand from{scores, scored};
    Carry carry = flat_empty_carry(from, values);
    return prefix_pool::forward({query, queried}, static_cast<Query>(kind), from, values, chunk,
                                carry);
  }

  static torch::autograd::variable_list backward(torch::autograd::AutogradContext* context,
                                                 torch::autograd::variable_list upstream) {
    const auto saved = context->get_saved_variables();
    const auto kind = static_cast<Query>(context->saved_data["kind"].toInt());
    const Operand query{saved[0], Features::unpacked(context->saved_data["queried"])};
    const Operand scores{saved[1], Features::unpacked(context->saved_data["scored"])};
    const auto pieces =
        pieces_of(saved[2].size(2), context->saved_data["chunk"].toInt(), kChunksInPiece);
    const auto type = compute_type(saved[2].scalar_type());
    const auto cut_at = [&](const Tensor& queries, const Piece& piece, Carry& carry) {
      return cut(queries, kind, scores.part(piece, type), part_of(saved[2], piece, type),
                 piece.alone(), carry);
    };
    // Forwards for the carry at each piece's left edge, then backwards with the chunks made again.
    Carry carry = flat_empty_carry(scores, saved[2]);
    Tensor sum = at::zeros_like(carry.sum);
    Tensor normaliser = at::zeros_like(carry.normaliser);
    std::vector<Carry> starts;
    for (const Piece& piece : pieces) {
      starts.push_back(carry);
      if (&piece != &pieces.back()) cut_at({}, piece, carry);
    }
    const std::vector<Tensor> slopes = {at::empty_like(saved[0]), at::empty_like(saved[1]),
                                        at::empty_like(saved[2])};
    for (std::size_t i = pieces.size(); i-- > 0;) {
      const Chunks chunks = cut_at(query.part(pieces[i], type), pieces[i], starts[i]);
      const Tensor g = part_of(upstream[0], pieces[i], type).reshape(chunks.v.sizes());
      ChunkGradients to = gradients(chunks, g);
      sweep_left(chunks, to, sum, normaliser);
      query.put_part_gradient(slopes[0], pieces[i], to.query);
      scores.put_part_gradient(slopes[1], pieces[i], to.k);
      put_part(slopes[2], pieces[i], to.v);
    }
    return {slopes[0], slopes[1], slopes[2], Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

Tensor chunked(const Operand& query, Query kind, const Operand& scores, const Tensor& values,
               std::int64_t chunk, Carry* carry) {
  if (!carry) {
    return ChunkedFunction::apply(query.whole, scores.whole, values, query.features,
                                  scores.features, static_cast<std::int64_t>(kind), chunk);
  }
  const at::NoGradGuard no_grad;
  Carry flat = carry->flat();
  const Carry place = flat;
  const Tensor y = forward(query, kind, scores, values, chunk, flat);
  place.maximum.copy_(flat.maximum);
  place.normaliser.copy_(flat.normaliser);
  place.sum.copy_(flat.sum);
  return y;
}

}  // namespace attnbench::prefix_pool
