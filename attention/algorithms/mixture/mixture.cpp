#include "attention/algorithms/mixture/mixture.hpp"

#include <algorithm>

#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/algorithms/tokens/tokens.hpp"

namespace attnbench::mixture {
namespace {

using at::Tensor;
using prefix_pool::Carry;
using prefix_pool::Query;

/// The window in tensor operations for the composite form, else by the tiled kernel if there is
/// one.
Tensor window(const SoftmaxCall& call, Form form) {
  if (form == Form::composite) return softmax_composite(call);
  if (call.q.is_cpu() || form == Form::fused) return softmax_tiled(call);
  return softmax_chunked(call, 128, 4096);
}

Tensor pool(const Tensor& weights, const Tensor& scores, const Tensor& values, Form form,
            std::int64_t chunk, Carry* carry) {
  const Query kind = Query::weights;
  if (form == Form::composite) {
    return prefix_pool::materialised(weights, kind, scores, values, carry);
  }
  if (form == Form::fused) return prefix_pool::fused(weights, kind, scores, values, carry);
  const bool short_step = carry != nullptr && values.size(2) < kShortStep;
  if (form == Form::scan || short_step) {
    return prefix_pool::scan(weights, kind, scores, values, carry);
  }
  return prefix_pool::chunked(weights, kind, scores, values, chunk, carry);
}

/// The call in float32 at least for the composite form, and for float16 on the CPU, which has no
/// kernel for it.
Call widened(const Call& call, Form form) {
  const auto type = call.values.scalar_type();
  const bool supported = type != at::kHalf || (form == Form::fused && call.values.is_cuda());
  if (form != Form::composite && supported) return call;
  Call wide = call;
  for (Tensor* each :
       {&wide.query, &wide.scores, &wide.values, &wide.local.q, &wide.local.k, &wide.local.v}) {
    *each = each->to(compute_type(type));
  }
  return wide;
}

/// `latent` computes the second sum from the weights p_{t,1..L}.
template <class Latent>
Tensor mixed(const Call& call, Form form, const Latent& latent) {
  const auto type = compute_type(call.values.scalar_type());
  const Call wide = widened(call, form);
  const std::int64_t latents = call.scores.size(3);
  const Tensor p = at::softmax(wide.query.to(type), -1);
  const Tensor far = latent(wide, p.narrow(-1, 1, latents)).to(type);
  return at::addcmul(far, p.narrow(-1, 0, 1), window(wide.local, form).to(type))
      .to(call.values.scalar_type());
}

/// Computes the window of all tokens, then adds the latents a few tokens at a time.
Tensor in_segments(const Call& given, Carry& carry) {
  const at::NoGradGuard no_grad;
  const Call call = widened(given, Form::fused);
  const auto type = compute_type(call.values.scalar_type());
  const Tensor output = softmax_tiled(call.local);
  const std::int64_t length = call.values.size(2), latents = call.scores.size(3);
  const std::int64_t most = fused_segment(call.query.size(0) * call.query.size(1), latents,
                                          static_cast<std::int64_t>(elementSize(type)));
  for (std::int64_t begin = 0; begin < length; begin += most) {
    const std::int64_t count = std::min(most, length - begin);
    const auto part = [&](const Tensor& x) { return x.narrow(2, begin, count); };
    const Tensor p = at::softmax(part(call.query).to(type), -1);
    const Tensor far = prefix_pool::fused(p.narrow(-1, 1, latents), Query::weights,
                                          part(call.scores), part(call.values).to(type), &carry);
    const Tensor place = part(output);
    place.copy_(at::addcmul(far, p.narrow(-1, 0, 1), place.to(type)));
  }
  return output.to(given.values.scalar_type());
}

Carry empty_carry(const Call& call) {
  return prefix_pool::empty_carry(call.values.size(0), call.values.size(1), call.scores.size(3),
                                  call.values.size(3), call.values.options());
}

// ---- costs

Cost pool_cost(Form form, const Options& options, const Problem& problem,
               const prefix_pool::PoolSizes& n) {
  if (problem.pattern != Pattern::causal) {
    return form == Form::fused
               ? prefix_pool::whole_fused_cost(n, problem, prefix_pool::Query::weights)
               : prefix_pool::whole_cost(n, static_cast<double>(problem.key_length));
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
  return prefix_pool::pool_sizes(problem, options.integer("latents_per_head"));
}

/// Workspace of a segment of `problem.length` tokens.
double workspace(Form form, const Options& options, const Problem& problem) {
  const auto n = sizes_of(options, problem);
  const double weights = n.heads * n.tokens * (n.latents + 1) * n.wide_bytes();
  const double part = n.heads * n.tokens * n.width * n.wide_bytes();
  const double pool = pool_cost(form, options, problem, n).workspace_bytes;
  const double local = window_cost(form, options, problem).workspace_bytes;
  // The latent part is finished before the window's begins.
  return weights + part + std::max(pool, local + part);
}

}  // namespace

Tensor causal(const Call& call, Form form, std::int64_t chunk, Carry* carry) {
  const bool recorded = carry == nullptr && gradient_wanted({call.query, call.scores, call.values,
                                                             call.local.q, call.local.k});
  if (form == Form::fused && !recorded) {
    Carry own = carry != nullptr ? *carry : empty_carry(call);
    return in_segments(call, own);
  }
  const at::AutoGradMode record(carry == nullptr && at::GradMode::is_enabled());
  return mixed(call, form, [&](const Call& wide, const Tensor& weights) {
    return pool(weights, wide.scores, wide.values, form, chunk, carry);
  });
}

Tensor bidirectional(const Call& call, Form form) {
  return mixed(call, form, [form](const Call& wide, const Tensor& weights) {
    if (form == Form::fused) {
      return prefix_pool::whole_fused(weights, Query::weights, wide.scores, wide.values);
    }
    return prefix_pool::whole(weights, Query::weights, wide.scores, wide.values);
  });
}

std::int64_t fused_segment(std::int64_t heads, std::int64_t latents, std::int64_t bytes) {
  return tokens_together(heads, latents + 1, bytes);
}

std::int64_t segment(std::int64_t chunk) {
  const std::int64_t piece = chunk * kChunksInPiece;
  return piece * std::max<std::int64_t>(1, 512 / piece);
}

// ---- costs

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
  const double both = rows + n.key_heads() * n.tokens;
  cost.minimal_bytes =
      pool.minimal_bytes + (rows + both * static_cast<double>(problem.head_dim)) * n.bytes;
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
      // The last segment's output beside the whole output.
      const double past =
          static_cast<double>(std::min(problem.length, options.window("window").left)) +
          static_cast<double>(together.length);
      cost.workspace_bytes =
          cost.state_bytes + n.key_heads() * past *
                                 static_cast<double>(problem.head_dim + problem.value_dim) *
                                 n.bytes;
    }
  }
  cost.workspace_bytes += workspace(form, options, together);
  return cost;
}

}  // namespace attnbench::mixture
