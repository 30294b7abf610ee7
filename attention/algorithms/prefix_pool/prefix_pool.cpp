#include "attention/algorithms/prefix_pool/prefix_pool.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Tokens that are processed in order, in all blocks at once, from the sums of the blocks before.
constexpr std::int64_t kBlock = 16;

/// Inclusive sums over s <= t of exp(m_s - m_t) a_s along dimension 1, for a [N, T, L, W] and m
/// [N, T, L] that does not decrease in t. By doubling in blocks whose ends are summed likewise, so
/// that work stays linear in T.
Tensor prefix_sums(Tensor a, Tensor m) {
  const std::int64_t length = a.size(1);
  const std::int64_t blocks = (length + kBlock - 1) / kBlock;
  const std::int64_t padding = blocks * kBlock - length;
  if (padding > 0) {
    a = at::constant_pad_nd(a, {0, 0, 0, 0, 0, padding});
    m = at::cat({m, m.narrow(1, length - 1, 1).expand({-1, padding, -1})}, 1);
  }
  a = a.unflatten(1, at::IntArrayRef{blocks, kBlock});
  m = m.unflatten(1, at::IntArrayRef{blocks, kBlock});
  for (std::int64_t reach = 1; reach < kBlock; reach *= 2) {
    const std::int64_t rest = kBlock - reach;
    const Tensor decay = shrink(m.narrow(2, 0, rest), m.narrow(2, reach, rest)).unsqueeze(-1);
    a = at::cat(
        {a.narrow(2, 0, reach), at::addcmul(a.narrow(2, reach, rest), decay, a.narrow(2, 0, rest))},
        2);
  }
  if (blocks > 1) {
    const Tensor ends = m.select(2, kBlock - 1);
    const Tensor before = prefix_sums(a.select(2, kBlock - 1), ends).narrow(1, 0, blocks - 1);
    const Tensor decay =
        shrink(ends.narrow(1, 0, blocks - 1).unsqueeze(2), m.narrow(1, 1, blocks - 1));
    a = at::cat({a.narrow(1, 0, 1),
                 at::addcmul(a.narrow(1, 1, blocks - 1), decay.unsqueeze(-1), before.unsqueeze(2))},
                1);
  }
  return a.flatten(1, 2).narrow(1, 0, length);
}

struct Prefixes {
  /// At place i: the sums up to the i-th token of every block, [N, n, L, D + 1]; the last column is
  /// the normaliser.
  std::vector<Tensor> sums;
  Tensor maximum;  ///< [N, n, kBlock, L]
};

/// All prefixes of k [N, T, L], v [N, T, D], from a flat carry.
Prefixes prefixes_of(const Tensor& k, const Tensor& v, const Carry& past) {
  const Tensor scores = in_blocks(k, kBlock, -kInfinity);
  const Tensor values = in_blocks(at::constant_pad_nd(v, {0, 1}, 1), kBlock, 0);
  const std::int64_t blocks = scores.size(1);
  // The result does not depend on the maximum, so that no gradient flows through it.
  const Tensor m = at::maximum(std::get<0>(at::cummax(scores.detach().flatten(1, 2), 1)),
                               past.maximum.unsqueeze(1))
                       .view(scores.sizes());
  const Tensor ends = m.select(2, kBlock - 1);
  const Tensor totals = at::matmul(shrink(scores, ends.unsqueeze(2)).transpose(-2, -1), values);
  const Tensor first = at::cat({past.sum, past.normaliser.unsqueeze(-1)}, -1).unsqueeze(1);
  const Tensor edges = at::cat({past.maximum.unsqueeze(1), ends}, 1).narrow(1, 0, blocks);
  Tensor sums = prefix_sums(at::cat({first, totals.narrow(1, 0, blocks - 1)}, 1), edges);
  Tensor before = edges;
  Prefixes made;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const Tensor here = m.select(2, i);
    sums = at::mul(sums, shrink(before, here).unsqueeze(-1))
               .addcmul_(shrink(scores.select(2, i), here).unsqueeze(-1),
                         values.select(2, i).unsqueeze(-2));
    before = here;
    made.sums.push_back(sums);
  }
  made.maximum = m;
  return made;
}

// ---- costs

/// The same for all forms: an update of a state of L D numbers for each token and key head, and a
/// read for each query head; executed are as many updates as reads.
Cost common_cost(const PoolSizes& n) {
  const double both = n.heads + n.key_heads();
  Cost cost;
  cost.model_flops = 2 * both * n.tokens * n.latents * n.width;
  cost.executed_flops = 4 * n.heads * n.tokens * n.latents * n.width;
  cost.minimal_bytes = both * n.tokens * (n.latents + n.width) * n.bytes;
  cost.exponentials = 2 * n.heads * n.tokens * n.latents;
  cost.state_bytes = n.key_heads() * n.latents * (n.width + 2) * n.wide_bytes();
  cost.saved_bytes = n.repeated_bytes();
  return cost;
}

}  // namespace

PoolSizes pool_sizes(const Problem& problem, std::int64_t latents) {
  PoolSizes sizes;
  sizes.heads = static_cast<double>(problem.batch * problem.heads);
  sizes.tokens = static_cast<double>(problem.length);
  sizes.latents = static_cast<double>(latents);
  sizes.width = static_cast<double>(problem.value_dim);
  sizes.bytes = static_cast<double>(bytes_of(problem.dtype));
  sizes.sharing = static_cast<double>(problem.heads / problem.kv_heads);
  sizes.repeated = problem.kv_heads > 1 && problem.kv_heads < problem.heads;
  return sizes;
}

RepeatedHeads::RepeatedHeads(std::int64_t heads, const Operand& of_scores, const Tensor& of_values,
                             const Carry* past)
    : scores(repeated_heads(of_scores.whole, heads), of_scores.features),
      values(repeated_heads(of_values, heads)) {
  if (past == nullptr) return;
  const auto repeated = [&](const Tensor& x) {
    return x.repeat_interleave(heads / x.size(1), 1);  // a copy, which the form advances
  };
  carry = {repeated(past->maximum), repeated(past->normaliser), repeated(past->sum)};
}

void RepeatedHeads::keep(const Carry& past) const {
  const at::NoGradGuard no_grad;
  const std::int64_t key_heads = past.maximum.size(1);
  const auto keep_one = [&](const Tensor& x, const Tensor& from) {
    x.copy_(from.unflatten(1, at::IntArrayRef{key_heads, from.size(1) / key_heads}).select(2, 0));
  };
  keep_one(past.maximum, carry.maximum);
  keep_one(past.normaliser, carry.normaliser);
  keep_one(past.sum, carry.sum);
}

Tensor shrink(const Tensor& from, const Tensor& to) {
  return from.sub(to.masked_fill(to == -kInfinity, 0)).exp_();
}

Tensor reciprocal_or_zero(const Tensor& x) { return at::reciprocal(x).masked_fill_(x == 0, 0); }

Tensor weights_of(const Tensor& query, Query kind, const Tensor& maximum,
                  const Tensor& normaliser) {
  if (kind == Query::weights) return query;
  if (kind == Query::logits) return at::softmax(query, -1);
  // softmax(query + maximum + log normaliser) without the logarithm.
  const Tensor x = query + maximum;
  const Tensor shares = shrink(x, x.detach().amax(-1, true)) * normaliser;
  const Tensor total = shares.sum(-1, true);
  return shares / total.masked_fill(total == 0, 1);
}

Tensor subtracted(const Tensor& weights, const Tensor& gradient, Query kind) {
  return kind == Query::logits_plus_z ? (weights * gradient).sum(-1, true) : gradient;
}

Tensor query_gradient(const Tensor& weights, const Tensor& gradient, Query kind) {
  if (kind == Query::weights) return gradient;
  const Tensor weighted = weights * gradient;
  return at::addcmul(weighted, weights, weighted.sum(-1, true), -1);
}

Carry Carry::flat() const {
  const auto n = maximum.size(0) * maximum.size(1);
  return {maximum.view({n, maximum.size(2)}), normaliser.view({n, maximum.size(2)}),
          sum.view({n, sum.size(2), sum.size(3)})};
}

Carry empty_carry(std::int64_t batch, std::int64_t heads, std::int64_t latents,
                  std::int64_t value_dim, const at::TensorOptions& like) {
  const auto options = like.dtype(compute_type(c10::typeMetaToScalarType(like.dtype())));
  return {at::full({batch, heads, latents}, -kInfinity, options),
          at::zeros({batch, heads, latents}, options),
          at::zeros({batch, heads, latents, value_dim}, options)};
}

Carry flat_empty_carry(const Operand& scores, const Tensor& values) {
  return empty_carry(1, values.size(0) * values.size(1), scores.width(), values.size(3),
                     values.options())
      .flat();
}

Tensor whole(const Operand& query, Query kind, const Operand& scores, const Tensor& values) {
  const auto type = compute_type(values.scalar_type());
  const Tensor k = scores.all(type);
  // The result does not depend on the maximum, so that no gradient flows through it. A latent to
  // which every token is hidden weighs nothing, and has no gradient.
  const Tensor maximum = k.detach().amax(-2, true);
  const Tensor e = shrink(k, maximum);
  const Tensor normaliser = e.sum(-2, true);
  const Tensor means = at::matmul(e.transpose(-2, -1), values.to(type)) /
                       normaliser.masked_fill(normaliser == 0, 1).transpose(-2, -1);
  const std::int64_t heads = query.whole.size(1);
  const Tensor queries = folded_heads(query.all(type), values.size(1));
  const Tensor p = weights_of(queries, kind, maximum, normaliser);
  return unfolded_heads(at::matmul(p, means), heads).to(values.scalar_type());
}

Tensor materialised(const Operand& query, Query kind, const Operand& scores, const Tensor& values,
                    Carry* carry) {
  const at::AutoGradMode record(carry == nullptr && at::GradMode::is_enabled());
  const auto type = compute_type(values.scalar_type());
  const Carry past = carry ? carry->flat() : flat_empty_carry(scores, values);
  const Prefixes prefixes =
      prefixes_of(scores.all(type).flatten(0, 1), values.to(type).flatten(0, 1), past);
  const auto width = values.size(3), length = values.size(2);
  // The weights of the heads that share a key head side by side, [N, T, H / G L].
  const Tensor all = query.all(type);
  const std::int64_t sharing = all.size(1) / values.size(1);
  const Tensor queries =
      in_blocks(all.flatten(0, 1)
                    .unflatten(0, at::IntArrayRef{all.size(0) * values.size(1), sharing})
                    .transpose(1, 2)
                    .flatten(2),
                kBlock, 0);
  std::vector<Tensor> outputs;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const Tensor& sums = prefixes.sums[static_cast<std::size_t>(i)];
    const Tensor normaliser = sums.select(-1, width).unsqueeze(-2);
    const Tensor p =
        weights_of(queries.select(2, i).unflatten(2, at::IntArrayRef{sharing, all.size(3)}), kind,
                   prefixes.maximum.select(2, i).unsqueeze(-2), normaliser);
    const Tensor gain = p / normaliser.masked_fill(normaliser == 0, 1);
    outputs.push_back(at::matmul(gain, sums.narrow(-1, 0, width)));  // [N, n, H / G, D]
  }
  const Tensor y = at::stack(outputs, 2).flatten(1, 2).narrow(1, 0, length).transpose(1, 2);
  if (carry) {
    const Tensor last = prefixes.sums.back().select(1, -1);
    past.maximum.copy_(prefixes.maximum.select(1, -1).select(1, kBlock - 1));
    past.normaliser.copy_(last.select(-1, width));
    past.sum.copy_(last.narrow(-1, 0, width));
  }
  return y.reshape({all.size(0), all.size(1), length, width}).to(values.scalar_type());
}

// ---- costs

Cost whole_cost(const PoolSizes& n, double keys) {
  const double both = n.key_heads() * keys + n.heads * n.tokens;
  Cost cost;
  cost.model_flops = 2 * both * n.latents * n.width;
  cost.executed_flops = cost.model_flops;
  cost.minimal_bytes = both * (n.latents + n.width) * n.bytes;
  cost.exponentials = both * n.latents;
  const double widened = n.bytes < n.wide_bytes() ? both * (n.latents + n.width) : 0;
  const double scores = n.key_heads() * n.latents * keys;
  const double means = n.key_heads() * n.latents * n.width;
  const double weights = n.heads * n.latents * n.tokens;
  cost.workspace_bytes = (scores + std::max(scores, weights) + means + widened) * n.wide_bytes();
  cost.saved_bytes = (2 * scores + weights + means + widened) * n.wide_bytes();
  cost.backward_flops = 2;
  return cost;
}

Cost materialised_cost(const PoolSizes& n) {
  Cost cost = common_cost(n);
  const double scores = n.key_heads() * n.tokens * n.latents;
  const double weights = n.heads * n.tokens * n.latents;
  const double prefixes = scores * (n.width + 1);
  // Products of a block's end, the decay, the new token; the output.
  cost.executed_flops = 5 * prefixes + 2 * weights * (n.width + 1);
  cost.exponentials = 3 * scores + weights;
  // One sum per token, one more per block of 16.
  cost.workspace_bytes = (prefixes * 17 / 16 + 2 * scores + 2 * weights) * n.wide_bytes();
  cost.saved_bytes = (prefixes * 17 / 16 + 2 * scores + 3 * weights) * n.wide_bytes();
  if (n.bytes < n.wide_bytes()) {
    cost.workspace_bytes +=
        (scores + weights + n.key_heads() * n.tokens * n.width) * n.wide_bytes();
  }
  cost.backward_flops = 2;
  return cost;
}

Cost scan_cost(const PoolSizes& n) {
  Cost cost = common_cost(n);
  const double block = std::min(n.tokens, 64.0);
  const double updates = n.heads * n.tokens * n.latents * n.width;
  cost.executed_flops += updates;
  cost.exponentials = 3 * n.heads * n.tokens * n.latents;
  cost.workspace_bytes =
      n.repeated_bytes() + n.heads * n.wide_bytes() *
                               (n.latents * (n.width + 2) + block * (8 * n.latents + 2 * n.width));
  // The sums again and their gradients, then the reverse recurrence read twice.
  cost.backward_flops = 12 * updates / cost.executed_flops;
  return cost;
}

Cost chunked_cost(const PoolSizes& n, double chunk) {
  Cost cost = common_cost(n);
  chunk = std::min(chunk, n.tokens);
  const double piece = std::min(static_cast<double>(kChunksInPiece) * chunk, n.tokens);
  const double inside = 2 * n.heads * n.tokens * chunk;
  cost.executed_flops += inside * (n.latents + n.width);
  cost.workspace_bytes =
      n.repeated_bytes() + n.heads * n.wide_bytes() *
                               (piece * (6 * n.latents + 2 * n.width + 2 * chunk) +
                                2 * n.latents * n.width * (piece / chunk + 1));
  // The sums of all chunks twice; then four products with the states, six
  // within the chunks.
  cost.backward_flops =
      (12 * n.heads * n.tokens * n.latents * n.width + inside * (4 * n.latents + 2 * n.width)) /
      cost.executed_flops;
  return cost;
}

Cost fused_cost(const PoolSizes& n, const Problem& problem) {
  Cost cost = common_cost(n);
  cost.workspace_bytes =
      n.repeated_bytes() + fused_workspace_bytes(problem, static_cast<std::int64_t>(n.latents));
  cost.backward_flops = 3;  // three scans of as many operations as the forward pass
  return cost;
}

Cost whole_fused_cost(const PoolSizes& n, const Problem& problem, Query kind) {
  Cost cost = whole_cost(n, static_cast<double>(problem.key_length));
  Problem rows = problem;  // the query's heads as rows of their key head
  rows.heads = problem.kv_heads;
  rows.length = problem.heads / problem.kv_heads * problem.length;
  cost.workspace_bytes =
      whole_fused_workspace_bytes(rows, static_cast<std::int64_t>(n.latents), kind);
  cost.saved_bytes = 0;
  cost.backward_flops = 2.5;  // the averages again, then two products for each of theirs
  return cost;
}

}  // namespace attnbench::prefix_pool
