#include "attention/algorithms/causal_product/causal_product.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace attnbench::causal_product {
namespace {

using at::Tensor;

// Tokens that are processed in order, in all blocks at once, from the sums of the blocks before.
constexpr std::int64_t kBlock = 16;
/// Added to relu, so that every token has weight: as in the code of Choromanski et al. and of LRA.
constexpr double kFloor = 1e-3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Cost common_cost(const ProductSizes& n) {
  Cost cost;
  const double tokens = n.heads * (n.keys + n.queries);
  cost.model_flops = 2 * tokens * n.features * n.width + 1.5 * tokens * n.features;
  cost.executed_flops = 2 * tokens * n.features * (n.width + 1);
  cost.minimal_bytes = tokens * (n.features + n.width) * n.bytes;
  cost.exponentials = tokens * n.features;
  if (n.causal) cost.state_bytes = n.heads * n.features * (n.width + 1) * n.wide_bytes();
  return cost;
}

}  // namespace

c10::IValue Form::packed() const {
  return c10::ivalue::Tuple::create({static_cast<std::int64_t>(feature), normalised, epsilon});
}

Form Form::unpacked(const c10::IValue& value) {
  const auto& parts = value.toTupleRef().elements();
  return {static_cast<Feature>(parts[0].toInt()), parts[1].toBool(), parts[2].toDouble()};
}

State empty_state(const Problem& problem, std::int64_t batch, std::int64_t features,
                  const at::TensorOptions& tensor) {
  const at::TensorOptions wide = compute_type(tensor);
  State state;
  state.tensors["sum"] = at::zeros({batch, problem.heads, features, problem.value_dim}, wide);
  state.tensors["normaliser"] = at::zeros({batch, problem.heads, features}, wide);
  return state;
}

Tensor feature_of(const Tensor& x, Feature feature) {
  if (feature == Feature::identity) return x;
  if (feature == Feature::relu_plus_floor) {
    return at::relu(x).add(kFloor).masked_fill(x == -kInfinity, 0);
  }
  if (feature == Feature::relu) return at::relu(x);
  return at::exp(x.clamp_max(0)) + at::relu(x);
}

Tensor feature_gradient(const Tensor& value, const Tensor& gradient, Feature feature) {
  if (feature == Feature::identity) return gradient;
  if (feature == Feature::relu_plus_floor) return gradient.masked_fill(value <= kFloor, 0);
  if (feature == Feature::relu) return gradient.masked_fill(value <= 0, 0);
  return gradient * value.clamp_max(1);
}

Tensor columns_of(const Tensor& c, const Form& form) {
  return form.normalised ? at::constant_pad_nd(c, {0, 1}, 1) : c;
}

Tensor result_of(const Tensor& sums, const Form& form) {
  if (!form.normalised) return sums;
  const std::int64_t width = sums.size(-1) - 1;
  const Tensor total = sums.narrow(-1, width, 1) + form.epsilon;
  return sums.narrow(-1, 0, width) / total.masked_fill(total == 0, 1);
}

Tensor sums_gradient(const Tensor& sums, const Tensor& gradient, const Form& form) {
  if (!form.normalised) return gradient;
  const std::int64_t width = sums.size(-1) - 1;
  const Tensor total = sums.narrow(-1, width, 1) + form.epsilon;
  const Tensor scaled = gradient / total.masked_fill(total == 0, 1);
  const Tensor y = result_of(sums, form);
  return at::cat({scaled, (scaled * y).sum(-1, true).neg_()}, -1);
}

Tensor materialised(const Operand& x, const Operand& y, const Tensor& c, const Form& form,
                    Tensor state) {
  const at::AutoGradMode record(!state.defined() && at::GradMode::is_enabled());
  const auto type = compute_type(c.scalar_type());
  const auto blocks_of = [&](const Tensor& whole) {
    return in_blocks(whole.flatten(0, 1), kBlock, 0);
  };
  const Tensor a = blocks_of(feature_of(x.all(type), form.feature));
  const Tensor b = blocks_of(feature_of(y.all(type), form.feature));
  const Tensor columns = blocks_of(columns_of(c.to(type), form));

  const Tensor totals = at::matmul(b.transpose(-2, -1), columns);
  const Tensor first =
      state.defined() ? state.flatten(0, 1).unsqueeze(1) : at::zeros_like(totals.narrow(1, 0, 1));
  Tensor sums = at::cat({first, totals.narrow(1, 0, totals.size(1) - 1)}, 1).cumsum(1);
  std::vector<Tensor> states;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    sums = at::addcmul(sums, b.select(2, i).unsqueeze(-1), columns.select(2, i).unsqueeze(-2));
    states.push_back(sums);
  }
  std::vector<Tensor> outputs;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const Tensor row = a.select(2, i).unsqueeze(-2);
    outputs.push_back(at::matmul(row, states[static_cast<std::size_t>(i)]).squeeze(-2));
  }
  if (state.defined()) state.copy_(sums.select(1, -1).view(state.sizes()));
  const Tensor products = at::stack(outputs, 2).flatten(1, 2).narrow(1, 0, c.size(2));
  return result_of(products, form).reshape(c.sizes()).to(c.scalar_type());
}

// ---- costs

ProductSizes sizes_of(const Problem& problem, double features) {
  return {static_cast<double>(problem.batch * problem.heads),
          static_cast<double>(problem.length),
          static_cast<double>(problem.key_length),
          features,
          static_cast<double>(problem.value_dim),
          static_cast<double>(bytes_of(problem.dtype)),
          problem.pattern == Pattern::causal};
}

Cost materialised_cost(const ProductSizes& n) {
  Cost cost = common_cost(n);
  const double features = n.heads * (n.queries + n.keys) * n.features * n.wide_bytes();
  const double sums = n.heads * (n.queries + n.keys) * (n.width + 1) * n.wide_bytes();
  const double state = n.heads * n.features * (n.width + 1) * n.wide_bytes();
  cost.workspace_bytes = 2 * features + state;
  cost.saved_bytes = 3 * features + sums + state;
  cost.backward_flops = 2;
  if (n.causal) {
    // A state per token and one per block of 16; products of a block, the new token, the output.
    cost.executed_flops = 6 * n.heads * n.keys * n.features * (n.width + 1);
    cost.workspace_bytes = n.keys * state * 17 / 16 + 2.5 * features;
    cost.saved_bytes = cost.workspace_bytes;
  }
  if (n.bytes < n.wide_bytes()) cost.workspace_bytes += features + sums;
  return cost;
}

Cost scan_cost(const ProductSizes& n) {
  Cost cost = common_cost(n);
  const double block = std::min(n.keys, 64.0);
  cost.workspace_bytes = n.heads * n.wide_bytes() *
                         (n.features * (n.width + 1) + block * (4 * n.features + 4 * n.width));
  cost.backward_flops = 3;
  return cost;
}

Cost chunked_cost(const ProductSizes& n, double chunk) {
  Cost cost = common_cost(n);
  chunk = std::min(chunk, n.keys);
  const double tokens = std::min(static_cast<double>(kChunksInPiece) * chunk, n.keys);
  const double inside = 2 * n.heads * n.keys * chunk;
  cost.executed_flops += inside * (n.features + n.width + 1);
  cost.workspace_bytes = n.heads * n.wide_bytes() *
                         (tokens * (3 * n.features + 3 * n.width + chunk) +
                          n.features * (n.width + 1) * (tokens / chunk + 2));
  cost.backward_flops = (14 * n.heads * n.keys * n.features * (n.width + 1) +
                         inside * (3 * n.features + 4 * n.width)) /
                        cost.executed_flops;
  return cost;
}

Cost fused_cost(const ProductSizes& n, const Problem& problem) {
  Cost cost = common_cost(n);
  cost.workspace_bytes = fused_workspace_bytes(problem, static_cast<std::int64_t>(n.features));
  cost.backward_flops = 3;  // three scans of as many operations as the forward pass
  return cost;
}

}  // namespace attnbench::causal_product
