// The mix over chosen blocks, block by block: the queries that see a block are gathered and meet
// its keys in one product; a row's partial sums are relative to the greatest score that it has
// seen.
#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "attention/algorithms/blocks/blocks.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/torch/product.hpp"

namespace attnbench {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Rows of all heads as one list: number ((b H + h) T + t), and a last row that is nobody's, which
/// fills up lists that are shorter than others.
Tensor listed(const Tensor& x) {
  const std::int64_t rows = x.size(0) * x.size(1) * x.size(2);
  Tensor list = at::empty({rows + 1, x.size(3)}, x.options().requires_grad(false));
  list.narrow(0, 0, rows).view(x.sizes()).copy_(x);
  list.narrow(0, rows, 1).zero_();
  return list;
}

/// What was listed, but for the last row.
Tensor unlisted(const Tensor& list, const Tensor& like) {
  return list.narrow(0, 0, list.size(0) - 1)
      .view({like.size(0), like.size(1), like.size(2), list.size(1)});
}

/// The rows that see each block: in each head those of the block's own tokens, then those that
/// chose it, as many as in the head that has most of them.
class Viewers {
 public:
  Viewers(const SoftmaxCall& call, std::int64_t size, const Tensor& chosen)
      : size_(size),
        heads_(call.q.size(0) * call.q.size(1)),
        length_(call.length()),
        offset_(call.offset) {
    first_ = at::arange(heads_, chosen.options()).unsqueeze(1) * length_;
    if (chosen.size(3) == 0) return;
    const std::int64_t blocks = blocks_of(call.key_length(), size);
    const Tensor numbers = chosen.reshape({heads_, length_ * chosen.size(3)});
    const auto [sorted, order] =
        numbers.masked_fill(numbers.lt(0), blocks).sort(/*stable=*/true, 1, false);
    rows_ = order.floor_divide(chosen.size(3)).add_(first_);
    const Tensor edges = at::arange(blocks + 1, chosen.options());
    bounds_ = at::searchsorted(sorted, edges.expand({heads_, blocks + 1}).contiguous());
    const Tensor most =
        (bounds_.narrow(1, 1, blocks) - bounds_.narrow(1, 0, blocks)).amax(0).cpu().contiguous();
    most_.assign(most.data_ptr<std::int64_t>(), most.data_ptr<std::int64_t>() + blocks);
  }

  /// Of the block's own tokens, in each head.
  std::int64_t own(std::int64_t block) const {
    return std::max<std::int64_t>(0, last_token(block) - first_token(block));
  }
  std::int64_t first_token(std::int64_t block) const {
    return std::max<std::int64_t>(0, block * size_ - offset_);
  }

  /// [B H, n], own ones first; n may be 0.
  Tensor of(std::int64_t block) const {
    const std::int64_t from = first_token(block), count = own(block);
    const Tensor mine = first_ + at::arange(from, from + count, first_.options());
    if (most_.empty() || most_[static_cast<std::size_t>(block)] == 0) return mine;
    const Tensor begin = bounds_.narrow(1, block, 1);
    const Tensor number =
        at::arange(most_[static_cast<std::size_t>(block)], first_.options()).unsqueeze(0);
    const Tensor there = number.lt(bounds_.narrow(1, block + 1, 1) - begin);
    const Tensor rows = rows_.gather(1, (begin + number).clamp_max(rows_.size(1) - 1));
    return at::cat({mine, rows.masked_fill(there.logical_not(), heads_ * length_)}, 1);
  }

 private:
  std::int64_t last_token(std::int64_t block) const {
    return std::min(length_, (block + 1) * size_ - offset_);
  }

  const std::int64_t size_, heads_, length_, offset_;
  Tensor first_;                    ///< [B H, 1], each head's first row
  Tensor rows_;                     ///< [B H, T n], in the order of the blocks that they chose
  Tensor bounds_;                   ///< [B H, N + 1], where each block's begin
  std::vector<std::int64_t> most_;  ///< of each block, in the head that has most of them
};

/// One block's keys, and the rows that see it.
struct Sight {
  std::int64_t begin, keys;  ///< tokens
  std::int64_t own, first;   ///< rows of the block's tokens in each head, and the first one's token
  Tensor rows;               ///< [B H n]
};

/// Calls `body` for each block that some query sees.
template <class Body>
void for_blocks(const SoftmaxCall& call, std::int64_t size, const Tensor& chosen,
                const Body& body) {
  const Viewers viewers(call, size, chosen);
  for (std::int64_t block = 0; block * size < call.key_length(); ++block) {
    const Tensor rows = viewers.of(block);
    if (rows.size(1) == 0) continue;
    const std::int64_t begin = block * size;
    body(Sight{begin, std::min(size, call.key_length() - begin), viewers.own(block),
               viewers.first_token(block), rows.flatten()});
  }
}

/// Rows of a list as [B, G, n, w]: query heads that share a key head are side by side.
Tensor taken(const Tensor& list, const Sight& sight, const SoftmaxCall& call) {
  return list.index_select(0, sight.rows).view({call.k.size(0), call.k.size(1), -1, list.size(1)});
}

/// [B, G, n, keys], minus infinity where hidden.
Tensor block_scores(const SoftmaxCall& call, const Sight& sight, const Tensor& q) {
  const Tensor k = call.k.narrow(2, sight.begin, sight.keys);
  Tensor scores = product(q, k.transpose(-2, -1)).to(compute_type(q.scalar_type()));
  if (sight.own > 0) {
    const auto integers = sight.rows.options();
    const std::int64_t first = call.offset + sight.first;
    const Tensor later = at::arange(sight.begin, sight.begin + sight.keys, integers).unsqueeze(0) >
                         at::arange(first, first + sight.own, integers).unsqueeze(1);
    scores.view({call.q.size(0), call.q.size(1), -1, sight.keys})
        .narrow(2, 0, sight.own)
        .masked_fill_(later, -kInfinite);
  }
  if (call.key_mask.defined()) {
    const Tensor real = call.key_mask.narrow(1, sight.begin, sight.keys);
    scores.masked_fill_(real.logical_not().unsqueeze(1).unsqueeze(1), -kInfinite);
  }
  return scores;
}

/// Output, and the logarithm of the sums [B H T + 1, 1], +infinity where a row sees no key.
std::pair<Tensor, Tensor> gather_all(const SoftmaxCall& call, std::int64_t size,
                                     const Tensor& chosen) {
  const std::int64_t width = call.v.size(3);
  const Tensor q = listed(call.q * call.scale);
  const auto wide = q.options().dtype(compute_type(q.scalar_type()));
  // Of each row: the output, the sum of weights, and the greatest score so far.
  const Tensor part = at::zeros({q.size(0), width + 2}, wide);
  part.narrow(1, width + 1, 1).fill_(-kInfinite);
  for_blocks(call, size, chosen, [&](const Sight& sight) {
    Tensor scores = block_scores(call, sight, taken(q, sight, call));
    const Tensor mine = taken(part, sight, call);
    const Tensor seen = mine.narrow(3, width + 1, 1);
    const Tensor greatest = at::maximum(seen, scores.amax(-1, true));
    // Avoids infinity minus infinity in rows that have not seen a key.
    const Tensor base = greatest.masked_fill(greatest == -kInfinite, 0.0);
    const Tensor weights = scores.sub_(base).exp_();
    mine.narrow(3, 0, width + 1).mul_((seen - base).exp_());
    mine.narrow(3, width, 1).add_(weights.sum(-1, true));
    const Tensor v = call.v.narrow(2, sight.begin, sight.keys);
    mine.narrow(3, 0, width).add_(product(weights.to(v.scalar_type()), v));
    seen.copy_(greatest);
    part.index_copy_(0, sight.rows, mine.view({-1, width + 2}));
  });
  part.narrow(0, part.size(0) - 1, 1).zero_();
  Tensor sum = part.narrow(1, width, 1);
  const Tensor blind = sum == 0;
  sum = sum.masked_fill(blind, 1.0);
  const Tensor lse = (part.narrow(1, width + 1, 1) + sum.log()).masked_fill_(blind, kInfinite);
  const Tensor out = part.narrow(1, 0, width) / sum;
  return {unlisted(out, call.q).to(call.q.scalar_type()), lse};
}

struct Gathered : torch::autograd::Function<Gathered> {
  static Variable forward(AutogradContext* context, const Variable&, const Variable&,
                          const Variable&, const SoftmaxCall& call, std::int64_t size,
                          const Tensor& chosen) {
    const auto [out, lse] = gather_all(call, size, chosen);
    save(context, {call, out, lse});
    context->saved_data["size"] = size;
    context->saved_data["chosen"] = chosen;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const SavedSoftmax saved = restore(context);
    const SoftmaxCall& call = saved.call;
    const Tensor q = listed(call.q * call.scale), d_out = listed(gradients[0]);
    const auto wide = compute_type(q.scalar_type());
    const Tensor dot = listed((gradients[0].to(wide) * saved.out).sum(-1, true));
    const Tensor dq = at::zeros_like(q, wide);
    const Tensor dk = at::zeros_like(call.k), dv = at::zeros_like(call.v);
    for_blocks(
        call, context->saved_data.at("size").toInt(), context->saved_data.at("chosen").toTensor(),
        [&](const Sight& sight) {
          const auto type = q.scalar_type();
          const Tensor rows = taken(q, sight, call), d_rows = taken(d_out, sight, call);
          const Tensor weights =
              block_scores(call, sight, rows).sub_(taken(saved.lse, sight, call)).exp_();
          const Tensor k = call.k.narrow(2, sight.begin, sight.keys);
          const Tensor v = call.v.narrow(2, sight.begin, sight.keys);
          dv.narrow(2, sight.begin, sight.keys)
              .copy_(product(weights.to(type).transpose(-2, -1), d_rows));
          // Rounded to 16 bits it would not cancel if one key has all the weight.
          const Tensor d_weights = at::matmul(d_rows.to(wide), v.to(wide).transpose(-2, -1));
          const Tensor d_scores = d_weights.sub_(taken(dot, sight, call)).mul_(weights).to(type);
          dk.narrow(2, sight.begin, sight.keys).copy_(product(d_scores.transpose(-2, -1), rows));
          dq.index_add_(0, sight.rows, product(d_scores, k).to(wide).view({-1, dq.size(1)}));
        });
    return {unlisted(dq, call.q).mul(call.scale).to(q.scalar_type()), dk, dv, {}, {}, {}};
  }
};

/// A query per head: the keys of its blocks side by side.
Tensor one_query(const SoftmaxCall& call, std::int64_t size, const Tensor& chosen) {
  const std::int64_t batch = call.q.size(0), heads = call.q.size(1);
  const auto integers = chosen.options();
  const Tensor own = at::full({batch, heads, 1}, call.offset / size, integers);
  const Tensor blocks = at::cat({chosen.select(2, 0), own}, 2).unsqueeze(-1);
  const Tensor tokens = blocks * size + at::arange(size, integers);
  Tensor hidden = tokens.gt(call.offset).logical_or_(blocks.lt(0)).flatten(2);  // [B, H, n]
  const Tensor places = tokens.clamp(0, call.offset).flatten(2);
  const Tensor row = at::arange(batch, integers).view({batch, 1, 1});
  const Tensor head =
      at::arange(heads, integers).floor_divide(heads / call.k.size(1)).view({1, heads, 1});
  SoftmaxCall near{
      call.q, call.k.index({row, head, places}), call.v.index({row, head, places}), {}, call.scale};
  if (call.key_mask.defined()) {
    const Tensor padded = call.key_mask.index({row, places}).logical_not_();
    near.k = near.k.masked_fill(padded.unsqueeze(-1), 0);
    near.v = near.v.masked_fill(padded.unsqueeze(-1), 0);
    hidden = hidden.logical_or_(padded);
  }
  near.unseen = hidden.unsqueeze(2);
  return softmax_composite(near);
}

}  // namespace

Tensor gathered_blocks(const SoftmaxCall& given, std::int64_t size, const Tensor& chosen) {
  if (given.length() == 1) return one_query(given, size, chosen);
  const SoftmaxCall call = given.without_padding();
  return Gathered::apply(call.q, call.k, call.v, call, size, chosen);
}

}  // namespace attnbench
