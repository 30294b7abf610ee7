#include "attention/algorithms/causal_product/causal_product.hpp"
#include "attention/algorithms/slots/slots.hpp"

namespace attnbench::slots {
namespace {

using at::Tensor;
namespace product = causal_product;

/// The two products' memories: sums of k_s w_s^T [B, H, D, L] and of w_s v_s^T [B, H, L, Dv].
struct Products {
  product::Memory logits, output;
};

/// Tokens [begin, begin + count) of a call, in the dtype of computation; 0 at hidden tokens.
struct Part {
  Tensor query, key, value, weights;
  Tensor reciprocal;  ///< 1 / tokens seen, [B or 1, H or 1, count, 1]
};

/// Advances `count` [B, H, 1], the number of tokens seen.
Part part_of(const Call& call, const Form& form, const Tensor& latents, Tensor& count,
             std::int64_t begin, std::int64_t tokens) {
  const auto type = latents.scalar_type();
  Tensor hidden;
  if (call.hidden.defined()) hidden = call.hidden.narrow(2, begin, tokens);
  const auto shown = [&](const Tensor& x) {
    const Tensor y = x.narrow(2, begin, tokens).to(type);
    return hidden.defined() ? y.masked_fill(hidden, 0) : y;
  };
  Part part;
  part.query = call.query.narrow(2, begin, tokens).to(type) * form.scale;
  part.key = shown(call.key);
  part.value = call.value.defined() ? shown(call.value) : part.key;
  part.weights =
      weight_of(at::matmul(shown(call.pack_key), latents.transpose(-2, -1)), form.weight);
  Tensor seen = at::ones({1, 1, tokens, 1}, count.options());
  if (hidden.defined()) {
    part.weights = part.weights.masked_fill(hidden, 0);
    seen = hidden.logical_not().to(type);
  }
  const Tensor counts = count.unsqueeze(2) + seen.cumsum(2);
  part.reciprocal = reciprocal_or_zero(counts);
  count = counts.select(2, tokens - 1);
  return part;
}

/// Without memories it starts from the first token and records gradients.
Tensor mixed(const Part& x, const Products* memories) {
  const Tensor logits = product::fused(x.query, x.key, x.weights, {},
                                       memories != nullptr ? &memories->logits : nullptr);
  const Tensor wanted = at::softmax(logits * x.reciprocal, -1);
  return product::fused(wanted, x.weights, x.value, {},
                        memories != nullptr ? &memories->output : nullptr) *
         x.reciprocal;
}

/// Rows of features and slots of a token.
std::int64_t rows_of(std::int64_t latents, std::int64_t width) { return 3 * latents + 2 * width; }

}  // namespace

Tensor fused(const Call& call, const Form& form, Memory* memory) {
  const auto given = call.query.scalar_type();
  const auto type = compute_type(given);
  const Tensor latents = call.latents.to(type) * form.scale;
  const std::int64_t length = call.query.size(2);
  const bool tied = !call.value.defined();
  if (memory == nullptr &&
      gradient_wanted({call.latents, call.query, call.pack_key, call.key, call.value})) {
    Tensor count = at::zeros({1, 1, 1}, latents.options().requires_grad(false));
    return mixed(part_of(call, form, latents, count, 0, length), nullptr).to(given);
  }
  const at::NoGradGuard no_grad;
  const std::int64_t batch = latents.size(0), heads = latents.size(1), slots = latents.size(2);
  const std::int64_t width = call.key.size(3);
  const std::int64_t value_width = tied ? width : call.value.size(3);
  const auto numbers = latents.options().requires_grad(false);
  Tensor count = memory != nullptr ? memory->normaliser : at::zeros({1, 1, 1}, numbers);
  Products memories;
  if (memory != nullptr) {
    memories.logits.sum = memory->sum.narrow(-1, 0, width).transpose(-2, -1).contiguous();
    memories.output.sum =
        memory->sum.narrow(-1, tied ? 0 : width, value_width).clone(at::MemoryFormat::Contiguous);
  } else {
    memories.logits.sum = at::zeros({batch, heads, width, slots}, numbers);
    memories.output.sum = at::zeros({batch, heads, slots, value_width}, numbers);
  }
  const Tensor out =
      at::empty({batch, heads, length, value_width}, call.query.options().requires_grad(false));
  const std::int64_t most = tokens_together(batch * heads, rows_of(slots, width),
                                            static_cast<std::int64_t>(latents.element_size()));
  for (std::int64_t begin = 0; begin < length; begin += most) {
    const std::int64_t tokens = std::min(most, length - begin);
    out.narrow(2, begin, tokens)
        .copy_(mixed(part_of(call, form, latents, count, begin, tokens), &memories));
  }
  if (memory != nullptr) {
    memory->sum.narrow(-1, tied ? 0 : width, value_width).copy_(memories.output.sum);
    if (!tied) memory->sum.narrow(-1, 0, width).copy_(memories.logits.sum.transpose(-2, -1));
    memory->normaliser.copy_(count.expand_as(memory->normaliser));
  }
  return out;
}

Support fused_supports(const Sizes& sizes) {
  if (sizes.averaging) {
    return Support::no("the causal form with averaging slots has no kernel; use chunked");
  }
  Problem logits = sizes.problem;
  logits.value_dim = static_cast<std::int64_t>(sizes.latents);
  const Support first = product::fused_supports(logits, sizes.problem.head_dim);
  return first ? product::fused_supports(sizes.problem, logits.value_dim) : first;
}

Cost fused_cost(const Sizes& n) {
  Cost cost = chunked_cost(n, 1);
  const auto slots = static_cast<std::int64_t>(n.latents);
  const double each = n.heads() * n.queries() * n.latents;
  // The logits of the weights, a product of D rows and L columns, one of L rows and Dv columns.
  cost.executed_flops = 2 * each * n.width() + 4 * each * (n.width() + n.value_width());
  Problem logits = n.problem;
  logits.value_dim = slots;
  const double kernel = std::max(product::fused_workspace_bytes(logits, n.problem.head_dim),
                                 product::fused_workspace_bytes(n.problem, slots));
  const double tokens = std::min(
      n.queries(), static_cast<double>(tokens_together(n.problem.batch * n.problem.heads,
                                                       rows_of(slots, n.problem.head_dim),
                                                       static_cast<std::int64_t>(n.wide_bytes()))));
  const double widened = n.bytes() < n.wide_bytes() ? n.width() + n.columns() : 0;
  const double memories = n.latents * (n.width() + n.value_width());
  cost.workspace_bytes =
      kernel + n.heads() * n.wide_bytes() *
                   (memories + tokens * (2 * n.latents + 2 * n.width() + widened +
                                         std::max(n.latents, n.value_width())));
  cost.saved_bytes = n.heads() * n.wide_bytes() * n.queries() *
                     (5 * n.latents + n.width() + n.value_width() + widened);
  // Two products for that of the logits, three scans for each kernel's.
  cost.backward_flops =
      (4 * each * n.width() + 12 * each * (n.width() + n.value_width())) / cost.executed_flops;
  return cost;
}

}  // namespace attnbench::slots
