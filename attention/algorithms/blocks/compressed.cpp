// Attention over the means of blocks, by parts of the queries.
#include <algorithm>
#include <limits>
#include <vector>

#include "attention/algorithms/blocks/blocks.hpp"
#include "attention/algorithms/tokens/tokens.hpp"

namespace attnbench {
namespace {

using at::Tensor;

/// Queries from t0, and the blocks that one of them completes or follows.
struct QueryPart {
  std::int64_t t0, rows, blocks;
};

/// The places among all tokens of a part's queries, [rows, 1].
Tensor places_of(const SoftmaxCall& call, const QueryPart& part) {
  const std::int64_t first = call.offset + part.t0;
  return at::arange(first, first + part.rows,
                    call.q.options().dtype(at::kLong).requires_grad(false))
      .unsqueeze(1);
}

/// Weights [B, H, rows, blocks] in double. means: [B, G, N, D], empty: [B, 1, 1, N].
Tensor weights_of_means(const SoftmaxCall& call, const QueryPart& part, const Tensor& means,
                        const Tensor& empty, std::int64_t size) {
  const std::int64_t batch = call.q.size(0), heads = call.q.size(1);
  const Tensor here = places_of(call, part);
  const Tensor ends = at::arange(1, part.blocks + 1, here.options()).unsqueeze(0) * size;
  const Tensor hidden = ends.gt(here + 1).logical_or(empty.narrow(3, 0, part.blocks));
  const Tensor q = (call.q.narrow(2, part.t0, part.rows).to(at::kDouble) * call.scale)
                       .reshape({batch, means.size(1), -1, call.q.size(3)});
  const Tensor scores = at::matmul(q, means.narrow(2, 0, part.blocks).transpose(-2, -1))
                            .view({batch, heads, part.rows, part.blocks})
                            .masked_fill(hidden, -std::numeric_limits<double>::infinity());
  // A row that sees none has finite scores, and weights of 0 afterwards.
  return at::softmax(scores.masked_fill(hidden.all(-1, true), 0.0), -1).masked_fill(hidden, 0.0);
}

/// The choice of the heads that share a key head, [B, G, rows, count].
Tensor heaviest_blocks(const SoftmaxCall& call, const QueryPart& part, const Tensor& weights,
                       const Tensor& empty, std::int64_t size, std::int64_t count) {
  const at::NoGradGuard no_grad;
  const std::int64_t groups = call.k.size(1);
  const Tensor own = places_of(call, part).floor_divide(size);
  const Tensor chosen = at::full({weights.size(0), groups, part.rows, count}, -1, own.options());
  const std::int64_t before = (call.offset + part.t0 + part.rows - 1) / size;  // the last one's own
  if (before == 0) return chosen;
  const Tensor block = at::arange(before, own.options()).unsqueeze(0);
  const Tensor first_or_last = block.eq(0).logical_or(block.eq(own - 1));
  const Tensor total = weights.detach()
                           .unflatten(1, at::IntArrayRef{groups, weights.size(1) / groups})
                           .sum(2)
                           .narrow(3, 0, before)
                           .masked_fill(first_or_last, std::numeric_limits<double>::infinity());
  const Tensor places =
      greatest_places(total, block.ge(own).logical_or(empty.narrow(3, 0, before)), count);
  chosen.narrow(3, 0, places.size(3)).copy_(places);
  return chosen;
}

}  // namespace

CompressedBlocks compressed_blocks(const SoftmaxCall& call, const BlockSums& keys,
                                   const BlockSums& values, std::int64_t size, std::int64_t count) {
  const std::int64_t batch = call.q.size(0), heads = call.q.size(1), length = call.length();
  const std::int64_t groups = call.k.size(1), width = call.v.size(3);
  const auto wide = compute_type(call.v.scalar_type());
  const Tensor means = keys.mean(), value_means = values.mean().to(wide);
  const Tensor empty = keys.tokens.eq(0).unsqueeze(1).unsqueeze(1);
  count = std::min(count, (call.offset + length - 1) / size);
  const std::int64_t most = std::clamp<std::int64_t>(
      kScoresTogether / (batch * heads * std::max<std::int64_t>(1, call.key_length() / size)), 1,
      length);
  std::vector<Tensor> outputs, chosen;
  for (std::int64_t t0 = 0; t0 < length; t0 += most) {
    const std::int64_t rows = std::min(most, length - t0);
    const QueryPart part{t0, rows, (call.offset + t0 + rows) / size};
    const Tensor weights = weights_of_means(call, part, means, empty, size);
    const Tensor shared =
        weights.to(wide).view({batch, groups, heads / groups * rows, part.blocks});
    outputs.push_back(at::matmul(shared, value_means.narrow(2, 0, part.blocks))
                          .view({batch, heads, rows, width}));
    chosen.push_back(heaviest_blocks(call, part, weights, empty, size, count));
  }
  return {at::cat(outputs, 2), at::cat(chosen, 2).repeat_interleave(heads / groups, 1)};
}

}  // namespace attnbench
