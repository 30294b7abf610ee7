#include "attention/algorithms/slots/slots.hpp"

#include <cmath>

#include "attention/algorithms/causal_product/causal_product.hpp"
#include "attention/algorithms/prefix_pool/prefix_pool.hpp"

namespace attnbench::slots {
namespace {

using at::Tensor;

/// A call's tensors in the dtype of computation, 0 at hidden tokens.
struct Wide {
  Tensor query, scores, key, value;

  Wide(const Call& call, const Form& form) {
    const auto type = compute_type(call.query.scalar_type());
    const auto shown = [&](const Tensor& x) {
      return call.hidden.defined() ? x.to(type).masked_fill(call.hidden, 0) : x.to(type);
    };
    query = call.query.to(type) * form.scale;
    scores =
        at::matmul(shown(call.pack_key), (call.latents.to(type) * form.scale).transpose(-2, -1));
    key = shown(call.key);
    value = call.value.defined() ? shown(call.value) : key;
  }
};

/// Two causal products: sum (q.k) w, then sum (softmax.w) v. If the values are the keys, the state
/// of one is the transpose of the other's.
Tensor counted(const Call& call, const Form& form, Memory* memory) {
  const Wide x(call, form);
  const bool tied = !call.value.defined();
  Tensor weights = weight_of(x.scores, form.weight);
  Tensor seen = at::ones({1, 1, x.key.size(2), 1}, x.key.options());
  if (call.hidden.defined()) {
    weights = weights.masked_fill(call.hidden, 0);
    seen = call.hidden.logical_not().to(seen.scalar_type());
  }
  Tensor count = seen.cumsum(2);
  Tensor to_logits, to_output;
  if (memory) {
    count = count + memory->normaliser.unsqueeze(2);
    const std::int64_t width = x.key.size(3);
    to_logits = memory->sum.narrow(-1, 0, width).transpose(-2, -1).contiguous();
    to_output = memory->sum.narrow(-1, tied ? 0 : width, x.value.size(3)).clone();
  }
  const Tensor inverse = reciprocal_or_zero(count);
  const Tensor logits = causal_product::materialised(x.query, x.key, weights, {}, to_logits);
  const Tensor wanted = at::softmax(logits * inverse, -1);
  const Tensor sums = causal_product::materialised(wanted, weights, x.value, {}, to_output);
  if (memory) {
    memory->sum.copy_(tied ? to_output : at::cat({to_logits.transpose(-2, -1), to_output}, -1));
    memory->normaliser.copy_(count.select(2, count.size(2) - 1).expand_as(memory->normaliser));
  }
  return sums * inverse;
}

/// The average keys and values of every slot after every token, [B, H, T, L, D + Dv], by the prefix
/// pool with each slot as a head of one latent.
Tensor averaged(const Call& call, const Form& form, Memory* memory) {
  const Wide x(call, form);
  Tensor scores = x.scores;
  if (call.hidden.defined()) scores = scores.masked_fill(call.hidden, -kInfinity);
  const std::int64_t batch = scores.size(0), heads = scores.size(1);
  const std::int64_t length = scores.size(2), slots = scores.size(3);
  const auto as_heads = [&](const Tensor& each) {
    return each.reshape({batch, heads * slots, length, each.size(4)});
  };
  const Tensor columns = call.value.defined() ? at::cat({x.key, x.value}, -1) : x.key;
  const Tensor alone = as_heads(scores.transpose(2, 3).unsqueeze(-1));
  const Tensor spread =
      as_heads(columns.unsqueeze(2).expand({batch, heads, slots, length, columns.size(3)}));
  prefix_pool::Carry carry;
  if (memory) {
    const std::int64_t n = heads * slots;
    carry = {memory->maximum.view({batch, n, 1}), memory->normaliser.view({batch, n, 1}),
             memory->sum.view({batch, n, 1, columns.size(3)})};
  }
  const Tensor means = prefix_pool::materialised(at::ones_like(alone), prefix_pool::Query::weights,
                                                 alone, spread, memory ? &carry : nullptr)
                           .view({batch, heads, slots, length, columns.size(3)})
                           .transpose(2, 3);
  const std::int64_t width = x.key.size(3);
  const std::int64_t from = columns.size(3) - x.value.size(3);
  const Tensor logits =
      at::matmul(means.narrow(-1, 0, width), x.query.unsqueeze(-1)).transpose(-2, -1);
  return at::matmul(at::softmax(logits, -1), means.narrow(-1, from, x.value.size(3))).squeeze(-2);
}

}  // namespace

Memory empty_memory(const Form& form, const std::vector<std::int64_t>& sum_sizes,
                    const at::TensorOptions& like) {
  const auto options = compute_type(like);
  const std::vector<std::int64_t> slots{sum_sizes[0], sum_sizes[1], sum_sizes[2]};
  if (form.weight == Weight::exponential) {
    return {at::full(slots, -kInfinity, options), at::zeros(slots, options),
            at::zeros(sum_sizes, options)};
  }
  return {{}, at::zeros({slots[0], slots[1], 1}, options), at::zeros(sum_sizes, options)};
}

Tensor materialised(const Call& call, const Form& form, Memory* memory) {
  const at::AutoGradMode record(memory == nullptr && at::GradMode::is_enabled());
  const Tensor y = form.weight == Weight::exponential ? averaged(call, form, memory)
                                                      : counted(call, form, memory);
  return y.to(call.query.scalar_type());
}

Tensor weight_of(const Tensor& scores, Weight weight) {
  // Beyond this softplus equals its argument, in double too.
  constexpr double threshold = 40;
  if (weight == Weight::softplus_b2) return at::softplus(scores, std::log(2.0), threshold);
  const Tensor linear = causal_product::feature_of(scores, causal_product::Feature::elu_plus_one);
  return weight == Weight::composed ? at::softplus(linear, 1, threshold) : linear;
}

Tensor reciprocal_or_zero(const Tensor& x) {
  return at::reciprocal(x.masked_fill(x == 0, kInfinity));
}

Tensor hidden_keys(const Tensor& key_mask) {
  return key_mask.defined() ? padded_tokens(key_mask).transpose(-2, -1) : Tensor();
}

Tensor softmax_weights(const Tensor& query, const Tensor& key, double scale, const Tensor& hidden) {
  Tensor logits = at::matmul(query * scale, key.transpose(-2, -1));
  if (!hidden.defined()) return at::softmax(logits, -1);
  const Tensor empty = hidden.all(-1, /*keepdim=*/true);
  logits = logits.masked_fill(hidden, -kInfinity).masked_fill(empty, 0);
  return at::softmax(logits, -1).masked_fill(empty, 0);
}

}  // namespace attnbench::slots
