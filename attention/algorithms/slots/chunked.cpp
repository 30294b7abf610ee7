#include "attention/algorithms/slots/slots.hpp"

#include <algorithm>

namespace attnbench::slots {
namespace {

using at::Tensor;

// Tokens per piece that the gradient of the recurrence recomputes.
constexpr std::int64_t kBlock = 64;

/// How far the running maximum may rise within a chunk of products. The gradient of 1 / n contains
/// the square of exp(limit), which must not overflow when multiplied.
double range_limit(const Tensor& x) { return x.scalar_type() == at::kDouble ? 300 : 35; }

/// A chunk's tokens, [N, c, .] with N = B H, in the dtype of computation.
struct Rows {
  Tensor query;
  Tensor scores;  ///< u, -inf or 0 where hidden
  Tensor key;     ///< 0 where hidden
  Tensor value;   ///< likewise; undefined if the keys are the values
  Tensor hidden;  ///< [N, c, 1], or undefined

  Rows part(std::int64_t begin, std::int64_t count) const {
    const auto of = [&](const Tensor& x) { return x.defined() ? x.narrow(1, begin, count) : x; };
    return {of(query), of(scores), of(key), of(value), of(hidden)};
  }
};

/// exp(from - to), 0 where `from` is -inf, even if `to` is too.
Tensor shrink(const Tensor& from, const Tensor& to) {
  return at::exp(from - to.masked_fill(to == -kInfinity, 0));
}

/// The weights of a chunk's tokens. Computing them advances the memory from the left edge to the
/// right edge, except for the tokens' contribution to the sum.
struct Weights {
  Tensor each;        ///< [N, c, L]
  Tensor reciprocal;  ///< 1 / n [N, c, L or 1]
};

Weights averaging_weights(const Rows& x, Memory& memory) {
  // The result does not depend on the maximum, so that no gradient flows through it.
  const Tensor left = memory.maximum.detach();
  const Tensor maximum = at::maximum(left, x.scores.detach().amax(1));
  const Tensor each = shrink(x.scores, maximum.unsqueeze(1));
  const Tensor decay = shrink(left, maximum);
  const Tensor before = decay * memory.normaliser;
  const Tensor normaliser = each.cumsum(1) + before.unsqueeze(1);
  memory.maximum = maximum;
  memory.normaliser = normaliser.select(1, normaliser.size(1) - 1);
  memory.sum = memory.sum * decay.unsqueeze(-1);
  return {each, reciprocal_or_zero(normaliser)};
}

Weights counting_weights(const Rows& x, Weight weight, Memory& memory) {
  Tensor each = weight_of(x.scores, weight);
  Tensor seen = at::ones({1, x.scores.size(1), 1}, x.scores.options());
  if (x.hidden.defined()) {
    each = each.masked_fill(x.hidden, 0);
    seen = x.hidden.logical_not().to(seen.scalar_type());
  }
  const Tensor count = seen.cumsum(1) + memory.normaliser.unsqueeze(1);
  memory.normaliser = count.select(1, count.size(1) - 1);
  return {each, reciprocal_or_zero(count)};
}

/// The outputs of a chunk [N, c, Dv].
Tensor products(const Rows& x, const Form& form, Memory& memory) {
  const Weights weights = form.weight == Weight::exponential
                              ? averaging_weights(x, memory)
                              : counting_weights(x, form.weight, memory);
  const bool tied = !x.value.defined();
  const Tensor& values = tied ? x.key : x.value;
  const std::int64_t width = x.key.size(2);
  const Tensor held_keys = memory.sum.narrow(2, 0, width);
  const Tensor held_values =
      tied ? held_keys : memory.sum.narrow(2, width, memory.sum.size(2) - width);
  const Tensor added = weights.each.transpose(1, 2);
  const Tensor pairs = at::bmm(x.query, x.key.transpose(1, 2)).tril();
  const Tensor wanted =
      at::baddbmm(at::bmm(x.query, held_keys.transpose(1, 2)), pairs, weights.each);
  const Tensor gain =
      at::softmax(wanted * (weights.reciprocal * form.scale), -1) * weights.reciprocal;
  const Tensor inside = at::bmm(gain, added).tril();
  const Tensor y = at::baddbmm(at::bmm(gain, held_values), inside, values);
  const Tensor keys = at::baddbmm(held_keys, added, x.key);
  memory.sum = tied ? keys : at::cat({keys, at::baddbmm(held_values, added, x.value)}, 2);
  return y;
}

/// Whether early tokens of the chunk would vanish beside its last maximum.
bool too_wide(const Rows& x, const Form& form, const Memory& memory) {
  if (form.weight != Weight::exponential || x.scores.size(1) == 1) return false;
  const Tensor scores = x.scores.detach();
  const Tensor right = at::maximum(memory.maximum, scores.amax(1));
  const Tensor rise = (right - at::maximum(memory.maximum, scores.select(1, 0)))
                          .masked_fill_(right == -kInfinity, 0);
  return (rise > range_limit(scores)).any().item<bool>();
}

Tensor chunks(const Rows& x, const Form& form, std::int64_t chunk, Memory& memory) {
  Tensors outputs;
  const std::int64_t length = x.query.size(1);
  for (std::int64_t begin = 0; begin < length; begin += chunk) {
    const Rows part = x.part(begin, std::min(chunk, length - begin));
    outputs.push_back(too_wide(part, form, memory) ? chunks(part, form, 1, memory)
                                                   : products(part, form, memory));
  }
  return outputs.size() == 1 ? outputs[0] : at::cat(outputs, 1);
}

/// `tokens` are query, pack_key, key, value and hidden of a piece; `latents` [N, L, D], scaled.
Rows rows_of(const Tensors& tokens, const Tensor& latents, const Form& form) {
  const auto flat = [&](const Tensor& x) { return x.flatten(0, 1).to(latents.scalar_type()); };
  const std::int64_t heads = tokens[0].size(1);
  Rows rows;
  if (tokens[4].defined()) rows.hidden = tokens[4].expand({-1, heads, -1, -1}).flatten(0, 1);
  // Replaced, not multiplied: hidden tokens may hold NaN.
  const auto shown = [&](const Tensor& x) {
    return rows.hidden.defined() ? flat(x).masked_fill(rows.hidden, 0) : flat(x);
  };
  rows.query = flat(tokens[0]);
  rows.scores = at::bmm(shown(tokens[1]), latents.transpose(1, 2));
  if (rows.hidden.defined() && form.weight == Weight::exponential) {
    rows.scores = rows.scores.masked_fill(rows.hidden, -kInfinity);
  }
  rows.key = shown(tokens[2]);
  if (tokens[3].defined()) rows.value = shown(tokens[3]);
  return rows;
}

Tensors flat(const Memory& memory) {
  const auto of = [](const Tensor& x) { return x.defined() ? x.flatten(0, 1) : x; };
  return {of(memory.maximum), of(memory.normaliser), of(memory.sum)};
}

}  // namespace

Tensor chunked(const Call& call, const Form& form, std::int64_t chunk, Memory* memory) {
  const at::AutoGradMode record(memory == nullptr && at::GradMode::is_enabled());
  const Tensor& value = call.value;
  const std::vector<std::int64_t> sum_sizes{
      call.latents.size(0), call.latents.size(1), call.latents.size(2),
      call.key.size(3) + (value.defined() ? value.size(3) : 0)};
  Tensors carry = flat(memory ? *memory : empty_memory(form, sum_sizes, call.query.options()));
  const auto type = compute_type(call.query.scalar_type());
  const Tensor latents = call.latents.flatten(0, 1).to(type) * form.scale;
  const Step step = [form, chunk](const Tensors& tokens, const Tensors& shared,
                                  const Tensors& past) {
    Memory here{past[0], past[1], past[2]};
    const Tensor y = chunks(rows_of(tokens, shared[0], form), form, chunk, here);
    return Stepped{y.unflatten(0, at::IntArrayRef{tokens[0].size(0), tokens[0].size(1)})
                       .to(tokens[0].scalar_type()),
                   {here.maximum, here.normaliser, here.sum}};
  };
  const std::int64_t piece = chunk == 1 ? kBlock : chunk * kChunksInPiece;
  const Tensor y = by_pieces(step, {call.query, call.pack_key, call.key, value, call.hidden},
                             {latents}, carry, piece);
  if (memory) {
    if (memory->maximum.defined()) memory->maximum.copy_(carry[0].view_as(memory->maximum));
    memory->normaliser.copy_(carry[1].view_as(memory->normaliser));
    memory->sum.copy_(carry[2].view_as(memory->sum));
  }
  return y;
}

}  // namespace attnbench::slots
