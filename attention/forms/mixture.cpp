#include "attention/forms/mixture.hpp"

#include <algorithm>

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
  if (call.q.is_cpu()) return softmax_tiled(call);
  return softmax_chunked(call, 128, 4096);
}

Tensor pool(const Tensor& weights, const Tensor& scores, const Tensor& values, Form form,
            std::int64_t chunk, Carry* carry) {
  const Query kind = Query::weights;
  if (form == Form::composite) {
    return prefix_pool::materialised(weights, kind, scores, values, carry);
  }
  const bool short_step = carry != nullptr && values.size(2) < kShortStep;
  if (form == Form::scan || short_step) {
    return prefix_pool::scan(weights, kind, scores, values, carry);
  }
  return prefix_pool::chunked(weights, kind, scores, values, chunk, carry);
}

/// The composite form computes everything in float32 at least. No kernel takes float16.
Call widened(const Call& call, Form form) {
  const auto type = call.values.scalar_type();
  if (form != Form::composite && type != at::kHalf) return call;
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

}  // namespace

Tensor causal(const Call& call, Form form, std::int64_t chunk, Carry* carry) {
  const at::AutoGradMode record(carry == nullptr && at::GradMode::is_enabled());
  return mixed(call, form, [&](const Call& wide, const Tensor& weights) {
    return pool(weights, wide.scores, wide.values, form, chunk, carry);
  });
}

Tensor bidirectional(const Call& call, Form form) {
  return mixed(call, form, [](const Call& wide, const Tensor& weights) {
    return prefix_pool::whole(weights, Query::weights, wide.scores, wide.values);
  });
}

std::int64_t segment(std::int64_t chunk) {
  const std::int64_t piece = chunk * kChunksInPiece;
  return piece * std::max<std::int64_t>(1, 512 / piece);
}

}  // namespace attnbench::mixture
