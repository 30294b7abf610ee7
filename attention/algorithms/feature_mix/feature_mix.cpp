#include "attention/algorithms/feature_mix/feature_mix.hpp"

#include <algorithm>

#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::feature_mix {
namespace {

using at::Tensor;
using prefix_pool::Carry;

constexpr auto kQuery = prefix_pool::Query::logits_plus_z;

/// Weights sum to 1, so any constant may be taken off the values. With this many keys or fewer they
/// are centred: the parts of a key's gradient cancel the more, the fewer keys there are, wholly
/// with one, where float32 left 1e-6 of parts of size 1.
constexpr std::int64_t kFewKeys = 8;

/// From this position on, chunks replace the kernel in a stream. The kernel adds single tokens to
/// its sums: in a stream of a million tokens in float32 the sums lost 7e-4 (presumably small terms
/// vanish beside a large sum), and less than 1e-4 when chunks were summed first.
constexpr std::int64_t kOneByOne = 1 << 16;

Tensor product(const Call& call, at::ScalarType type) {
  const Tensor keys = causal_product::feature_of(call.key.all(type), call.form.feature);
  const Tensor queries = causal_product::feature_of(call.query.all(type), call.form.feature);
  const Tensor columns = causal_product::columns_of(call.value.to(type), call.form);
  const Tensor sum = at::matmul(keys.transpose(-2, -1), columns);
  return causal_product::result_of(at::matmul(queries, sum), call.form)
      .to(call.value.scalar_type());
}

/// Continues from `carry`, if there is one, and advances it.
Tensor pooled(Way way, const Call& call, std::int64_t chunk, Carry* carry) {
  if (way == Way::composite) {
    return prefix_pool::materialised(call.query, kQuery, call.key, call.value, carry);
  }
  if (way == Way::scan) return prefix_pool::scan(call.query, kQuery, call.key, call.value, carry);
  if (way == Way::fused) return prefix_pool::fused(call.query, kQuery, call.key, call.value, carry);
  return prefix_pool::chunked(call.query, kQuery, call.key, call.value, chunk, carry);
}

/// The same with the sums `past` [B, H, F, Dv + 1], which may be undefined.
Tensor summed(Way way, const Call& call, std::int64_t chunk, const Tensor& past) {
  const auto& [query, key, value, logarithms, form] = call;
  if (way == Way::composite) return causal_product::materialised(query, key, value, form, past);
  if (way == Way::scan) return causal_product::scan(query, key, value, form, past);
  if (way == Way::fused) return causal_product::fused(query, key, value, form);
  return causal_product::chunked(query, key, value, form, chunk, past);
}

}  // namespace

Tensor whole(Way way, const Call& call) {
  const auto type = compute_type(call.value.scalar_type());
  if (!call.logarithms) return product(call, type);
  const auto pool = way == Way::fused ? prefix_pool::whole_fused : prefix_pool::whole;
  if (call.value.size(2) > kFewKeys) return pool(call.query, kQuery, call.key, call.value);
  const Tensor values = call.value.to(type);
  const Tensor centre = values.detach().mean(-2, true);
  return (pool(call.query, kQuery, call.key, values - centre) + centre)
      .to(call.value.scalar_type());
}

Tensor causal(Way way, const Call& call, std::int64_t chunk) {
  return call.logarithms ? pooled(way, call, chunk, nullptr) : summed(way, call, chunk, {});
}

Tensor continued(Way way, const Call& call, std::int64_t chunk, State& state) {
  const at::NoGradGuard no_grad;
  const auto count = call.value.size(2);
  if (way == Way::fused && state.position >= kOneByOne && count >= kShortStep) way = Way::chunked;
  if (way == Way::chunked && count < kShortStep) way = Way::scan;
  state.position += count;
  Tensor& sum = state["sum"];
  Tensor& normaliser = state["normaliser"];
  if (call.logarithms) {
    Carry carry{state["maximum"], normaliser, sum};
    return pooled(way, call, chunk, &carry);
  }
  if (way == Way::fused) {  // it updates the tensors of the state
    const causal_product::Memory memory{sum, normaliser};
    return causal_product::fused(call.query, call.key, call.value, call.form, &memory);
  }
  const Tensor past = at::cat({sum, normaliser.unsqueeze(-1)}, -1);
  const Tensor y = summed(way, call, chunk, past);
  sum.copy_(past.narrow(-1, 0, sum.size(-1)));
  normaliser.copy_(past.select(-1, sum.size(-1)));
  return y;
}

State empty_state(const Problem& problem, std::int64_t batch, std::int64_t features,
                  bool logarithms, const at::TensorOptions& tensor) {
  if (!logarithms) return causal_product::empty_state(problem, batch, features, tensor);
  const Carry carry =
      prefix_pool::empty_carry(batch, problem.heads, features, problem.value_dim, tensor);
  State state;
  state.tensors = {
      {"maximum", carry.maximum}, {"normaliser", carry.normaliser}, {"sum", carry.sum}};
  return state;
}

// ---- costs

namespace {

/// `cost` of mixing features plus that of making them, with `again` times their FLOPs backward.
Cost with_features(Cost cost, const Sizes& of, double again) {
  const auto& n = of.n;
  cost.backward_flops = (cost.backward_flops * cost.executed_flops + again * of.making) /
                        (cost.executed_flops + of.making);
  cost.model_flops += of.making;
  cost.executed_flops += of.making;
  cost.minimal_bytes = n.heads * (n.queries + n.keys) * (of.dim + n.width) * n.bytes +
                       of.own_numbers * n.wide_bytes();
  cost.exponentials =
      of.logarithms ? std::max(cost.exponentials, n.heads * (n.queries + n.keys) * n.features) : 0;
  return cost;
}

prefix_pool::PoolSizes pool_of(const Sizes& of) {
  return {of.n.heads, of.n.keys, of.n.features, of.n.width, of.n.bytes};
}

Cost composite_cost(const Sizes& of) {
  const auto& n = of.n;
  const double inputs = n.heads * (n.queries + n.keys) * (of.dim + n.width) * n.wide_bytes();
  const double keys = n.heads * n.keys * n.features * n.wide_bytes();
  const double queries = n.heads * n.queries * n.features * n.wide_bytes();
  Cost cost;
  if (of.logarithms && n.causal) {
    cost = prefix_pool::materialised_cost(pool_of(of));
    cost.workspace_bytes += keys + queries;
    cost.saved_bytes += keys + queries + inputs;
  } else {
    cost = causal_product::materialised_cost(n);
    if (!n.causal) cost.workspace_bytes = 2 * keys + 3 * queries;
    if (of.made()) cost.saved_bytes += inputs;
    if (n.bytes < n.wide_bytes()) cost.workspace_bytes += inputs;
  }
  return with_features(cost, of, 1);
}

Cost fused_cost(const Sizes& of, const Problem& problem) {
  const auto& n = of.n;
  const auto features = static_cast<std::int64_t>(n.features);
  Cost cost;
  if (!n.causal) {
    cost = causal_product::materialised_cost(n);
    cost.workspace_bytes =
        prefix_pool::whole_fused_workspace_bytes(problem, features, kQuery, of.made());
    // With a gradient the features are computed before the kernel, and kept.
    cost.saved_bytes =
        of.made() ? n.heads * (n.queries + n.keys) * (n.features + of.dim) * n.wide_bytes() +
                        n.heads * n.keys * n.width * n.wide_bytes()
                  : 0;
    cost.backward_flops = 2.5;
    return with_features(cost, of, 1);
  }
  if (of.logarithms) {
    cost = prefix_pool::fused_cost(pool_of(of), problem);
    cost.workspace_bytes = prefix_pool::fused_workspace_bytes(problem, features, kQuery);
  } else {
    cost = causal_product::fused_cost(n, problem);
  }
  if (!of.made()) return with_features(cost, of, 0);
  // Features of queries and keys of a few tokens; those that are not logarithms need two more
  // arrays.
  const double tokens = std::min(
      n.queries, static_cast<double>(tokens_together(static_cast<std::int64_t>(n.heads), features,
                                                     static_cast<std::int64_t>(n.wide_bytes()))));
  cost.workspace_bytes +=
      n.heads * tokens *
      ((of.logarithms ? 2 : 4) * n.features + of.dim + (n.bytes < n.wide_bytes() ? n.width : 0)) *
      n.wide_bytes();
  cost.workspace_bytes += n.heads * n.features * (n.width + 2) * n.wide_bytes();
  if (n.bytes < n.wide_bytes()) cost.workspace_bytes += n.heads * n.queries * n.width * 4;
  return with_features(cost, of, 3);
}

}  // namespace

Cost cost(Way way, const Sizes& of, const Problem& problem) {
  if (way == Way::composite) return composite_cost(of);
  if (way == Way::fused) return fused_cost(of, problem);
  // Backward the features are computed three times (keys twice, queries once or twice).
  if (way == Way::scan) {
    return with_features(
        of.logarithms ? prefix_pool::scan_cost(pool_of(of)) : causal_product::scan_cost(of.n), of,
        3);
  }
  return with_features(of.logarithms ? prefix_pool::chunked_cost(pool_of(of), of.chunk)
                                     : causal_product::chunked_cost(of.n, of.chunk),
                       of, 3);
}

Support fused_supports(const std::string& mechanism, const Problem& problem, std::int64_t features,
                       bool logarithms) {
  if (problem.pattern != Pattern::causal) {
    if (logarithms) return prefix_pool::whole_fused_supports(problem);
    return Support::no(mechanism +
                       ": in patterns other than causal only exact exponential features have a "
                       "kernel; use composite");
  }
  return logarithms ? prefix_pool::fused_supports(problem, features)
                    : causal_product::fused_supports(problem, features);
}

}  // namespace attnbench::feature_mix
