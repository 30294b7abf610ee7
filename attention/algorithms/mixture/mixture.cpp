#include "attention/algorithms/mixture/mixture.hpp"

#include <algorithm>

#include "attention/algorithms/recurrence/fused_cost.hpp"

namespace attnbench::mixture {
namespace {

using at::Tensor;
using prefix_pool::Carry;
using prefix_pool::Query;

// As in Latte: below this the products of a chunk do not pay.
constexpr std::int64_t kShortStep = 8;

/// The window in tensor operations for the composite form, else in tiles where there is a kernel.
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

/// The composite form computes everything in float32 at least. No kernel of the CPU's takes
/// float16.
Call widened(const Call& call, Form form) {
  const auto type = call.values.scalar_type();
  const bool taken = type != at::kHalf || (form == Form::fused && call.values.is_cuda());
  if (form != Form::composite && taken) return call;
  Call wide = call;
  for (Tensor* each :
       {&wide.query, &wide.scores, &wide.values, &wide.local.q, &wide.local.k, &wide.local.v}) {
    *each = each->to(compute_type(type));
  }
  return wide;
}

/// `latent` makes the second sum of the weights p_{t,1..L}.
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

/// The window of all tokens into the output, to which the latents are added a few tokens at a time.
Tensor in_segments(const Call& given, Carry& carry) {
  const at::NoGradGuard no_grad;
  const Call call = widened(given, Form::fused);
  const auto type = compute_type(call.values.scalar_type());
  const Tensor output = softmax_tiled(call.local);
  const std::int64_t length = call.values.size(2), latents = call.scores.size(3);
  const std::int64_t most = fused_segment(call.values.size(0) * call.values.size(1), latents,
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
      // Rounded as the tensor cores would round them: float32 weights would make all of it float32.
      const auto type = wide.values.scalar_type();
      return prefix_pool::whole_fused(weights.is_cuda() ? weights.to(type) : weights,
                                      Query::weights, wide.scores, wide.values);
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

}  // namespace attnbench::mixture
