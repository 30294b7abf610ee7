// Means of blocks, and which of them a query chooses.
#include <algorithm>
#include <limits>

#include "attention/algorithms/blocks/blocks.hpp"
#include "attention/algorithms/tokens/tokens.hpp"

namespace attnbench {
namespace {

using at::Tensor;

/// x [B, ..., S, w] as sums over blocks [B, ..., N, w] in double.
Tensor over_each_block(const Tensor& x, std::int64_t size, std::int64_t lead) {
  const std::int64_t tokens = x.size(-2), count = blocks_of(lead + tokens, size);
  if (count == 1) return x.sum(-2, true, at::kDouble);
  const std::int64_t rest = count * size - lead - tokens;
  const Tensor whole = lead + rest == 0 ? x : at::constant_pad_nd(x, {0, 0, lead, rest});
  return whole.unflatten(-2, at::IntArrayRef{count, size}).sum(-2, false, at::kDouble);
}

std::int64_t rows_together(const SoftmaxCall& call, std::int64_t candidates) {
  const std::int64_t of_one = call.q.size(0) * call.q.size(1) * candidates;
  return std::clamp<std::int64_t>(kScoresTogether / of_one, 1, call.length());
}

}  // namespace

Tensor BlockSums::mean() const { return sum / tokens.clamp_min(1).unsqueeze(1).unsqueeze(-1); }

std::int64_t blocks_of(std::int64_t tokens, std::int64_t size) {
  return (tokens + size - 1) / size;
}

BlockSums block_sums(const Tensor& x, const Tensor& key_mask, std::int64_t size,
                     std::int64_t lead) {
  const Tensor real =
      key_mask.defined()
          ? key_mask
          : at::ones({x.size(0), x.size(2)}, x.options().dtype(at::kBool).requires_grad(false));
  return {over_each_block(without_padding(x, key_mask), size, lead),
          over_each_block(real.unsqueeze(-1), size, lead).squeeze(-1)};
}

void add_block_sums(const BlockSums& all, const BlockSums& fresh, std::int64_t first) {
  all.sum.narrow(2, first, fresh.sum.size(2)).add_(fresh.sum);
  all.tokens.narrow(1, first, fresh.tokens.size(1)).add_(fresh.tokens);
}

Tensor greatest_places(const Tensor& scores, const Tensor& hidden, std::int64_t count) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::min();
  const std::int64_t places = scores.size(-1);
  // The bits of a float32 as an integer of the same order, then the place, for the order among
  // equal ones is not topk's to choose. Adding 0 makes -0 the 0 that it is equal to.
  const Tensor bits = (scores.to(at::kFloat) + 0.0).view(at::kInt);
  const Tensor order =
      bits.bitwise_right_shift(31).bitwise_and_(0x7fffffff).bitwise_xor_(bits).to(at::kLong);
  const Tensor backwards = at::arange(places - 1, -1, -1, order.options());
  const Tensor ranks = order.mul_(places).add_(backwards).masked_fill_(hidden, none);
  const Tensor best = std::get<0>(ranks.topk(std::min(count, places)));
  return (places - 1 - best.remainder(places)).masked_fill_(best.eq(none), -1);
}

Tensor blocks_by_mean(const SoftmaxCall& call, const BlockSums& keys, std::int64_t size,
                      std::int64_t count) {
  const at::NoGradGuard no_grad;
  const std::int64_t batch = call.q.size(0), heads = call.q.size(1), length = call.length();
  const std::int64_t candidates = (call.offset + length - 1) / size;
  const auto integers = call.q.options().dtype(at::kLong).requires_grad(false);
  const Tensor chosen = at::full({batch, heads, length, std::min(count, candidates)}, -1, integers);
  if (chosen.numel() == 0) return chosen;
  const Tensor means = keys.mean().transpose(-2, -1);
  const Tensor empty = keys.tokens.eq(0).unsqueeze(1).unsqueeze(1);
  const std::int64_t most = rows_together(call, candidates);
  for (std::int64_t t0 = 0; t0 < length; t0 += most) {
    const std::int64_t rows = std::min(most, length - t0);
    const std::int64_t before = (call.offset + t0 + rows - 1) / size;  // of the last row's own
    if (before == 0) continue;
    const Tensor own =
        at::arange(call.offset + t0, call.offset + t0 + rows, integers).floor_divide(size);
    const Tensor later = at::arange(before, integers).unsqueeze(0).ge(own.unsqueeze(1));
    // The heads that share key heads, as rows of one product.
    const Tensor q = call.q.narrow(2, t0, rows)
                         .to(at::kDouble)
                         .reshape({batch, means.size(1), -1, call.q.size(3)});
    const Tensor scores = at::matmul(q, means.narrow(3, 0, before));
    const Tensor places =
        greatest_places(scores.view({batch, heads, rows, before}),
                        later.logical_or(empty.narrow(3, 0, before)), chosen.size(3));
    chosen.narrow(2, t0, rows).narrow(3, 0, places.size(3)).copy_(places);
  }
  return chosen;
}

Tensor unchosen_keys(const SoftmaxCall& call, std::int64_t size, const Tensor& chosen) {
  const std::int64_t batch = chosen.size(0), heads = chosen.size(1), length = call.length();
  const std::int64_t keys = call.key_length(), blocks = blocks_of(keys, size);
  const Tensor own =
      at::arange(call.offset, call.offset + length, chosen.options()).floor_divide(size);
  const Tensor seen = at::cat({chosen.masked_fill(chosen.lt(0), blocks),
                               own.view({1, 1, length, 1}).expand({batch, heads, length, 1})},
                              3);
  // One block more than there are, for those that were not chosen.
  const Tensor unseen =
      at::ones({batch, heads, length, blocks + 1}, chosen.options().dtype(at::kBool))
          .scatter_(3, seen, false);
  return unseen.narrow(3, 0, blocks)
      .unsqueeze(-1)
      .expand({batch, heads, length, blocks, size})
      .reshape({batch, heads, length, blocks * size})
      .narrow(3, 0, keys);
}

}  // namespace attnbench
