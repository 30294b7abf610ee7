#include "attention/algorithms/mixture/cost.hpp"

#include <algorithm>

#include "attention/algorithms/prefix_pool/cost.hpp"
#include "attention/algorithms/softmax/implementations.hpp"

namespace attnbench::mixture {
namespace {

Cost pool_cost(Form form, const Options& options, const Problem& problem,
               const prefix_pool::PoolSizes& n) {
  if (problem.pattern != Pattern::causal) {
    return form == Form::fused
               ? prefix_pool::whole_fused_cost(n, problem, prefix_pool::Query::weights)
               : prefix_pool::whole_cost(n, n.tokens);
  }
  if (form == Form::composite) return prefix_pool::materialised_cost(n);
  if (form == Form::scan) return prefix_pool::scan_cost(n);
  if (form == Form::fused) return prefix_pool::fused_cost(n, problem);
  return prefix_pool::chunked_cost(n, static_cast<double>(options.integer("chunk")));
}

BandedMechanism banded() {
  return {[](const Options& each, const Problem&) { return each.window("window"); },
          {},
          [](const Options& each, const Problem& sizes) {
            return std::min(sizes.length, each.window("window").left + 1);
          }};
}

Cost window_cost(Form form, const Options& options, const Problem& problem) {
  const auto local =
      form == Form::composite ? composite_softmax(banded()) : tiled_softmax(banded());
  return local.cost(options, problem);
}

prefix_pool::PoolSizes sizes_of(const Options& options, const Problem& problem) {
  return {static_cast<double>(problem.batch * problem.heads), static_cast<double>(problem.length),
          static_cast<double>(options.integer("latents_per_head")),
          static_cast<double>(problem.value_dim), static_cast<double>(bytes_of(problem.dtype))};
}

/// Workspace of `problem.length` tokens that are taken together.
double workspace(Form form, const Options& options, const Problem& problem) {
  const auto n = sizes_of(options, problem);
  const double weights = n.heads * n.tokens * (n.latents + 1) * n.wide_bytes();
  const double part = n.heads * n.tokens * n.width * n.wide_bytes();
  const double pool = pool_cost(form, options, problem, n).workspace_bytes;
  const double local = window_cost(form, options, problem).workspace_bytes;
  // The latent part is done before the window's begins.
  return weights + part + std::max(pool, local + part);
}

}  // namespace

Support window_supports(const Options& options, const Problem& problem) {
  return tiled_softmax(banded()).supports(options, problem);
}

Cost cost(Form form, const Options& options, const Problem& problem) {
  const auto n = sizes_of(options, problem);
  const Cost pool = pool_cost(form, options, problem, n);
  const Cost local = window_cost(form, options, problem);
  const double rows = n.heads * n.tokens;
  Cost cost;
  cost.model_flops = pool.model_flops + local.model_flops;
  cost.executed_flops = pool.executed_flops + local.executed_flops;
  cost.exponentials = pool.exponentials + local.exponentials + rows;
  // Values are read once for both parts, and there is one output.
  cost.minimal_bytes =
      pool.minimal_bytes + rows * (1 + 2 * static_cast<double>(problem.head_dim)) * n.bytes;
  cost.state_bytes = pool.state_bytes + local.state_bytes;
  cost.saved_bytes =
      pool.saved_bytes + local.saved_bytes + rows * (n.latents + 1 + 2 * n.width) * n.wide_bytes();
  cost.backward_flops =
      (pool.executed_flops * pool.backward_flops + local.executed_flops * local.backward_flops) /
      std::max(1.0, cost.executed_flops);
  Problem together = problem;
  if (problem.pattern == Pattern::causal && form != Form::composite && !problem.gradient) {
    const std::int64_t most =
        form == Form::fused
            ? fused_segment(problem.batch * problem.heads, options.integer("latents_per_head"),
                            static_cast<std::int64_t>(n.wide_bytes()))
            : segment(options.integer("chunk"));
    together.length = std::min(problem.length, most);
    together.key_length = together.length;
    if (form == Form::fused) {
      cost.workspace_bytes = pool.state_bytes;
    } else {
      // The last segment's output beside the whole one's.
      const double past =
          static_cast<double>(std::min(problem.length, options.window("window").left)) +
          static_cast<double>(together.length);
      cost.workspace_bytes =
          cost.state_bytes +
          n.heads * past * static_cast<double>(problem.head_dim + problem.value_dim) * n.bytes;
    }
  }
  cost.workspace_bytes += workspace(form, options, together);
  return cost;
}

}  // namespace attnbench::mixture
