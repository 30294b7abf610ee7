// cosFormer, Qin et al. 2022: linear attention with relu features, weighted by the cosine of the
// distance. The cosine of a difference is a product of features twice as wide: those of x at token
// t are relu(x) sin(pi t / 2M) and relu(x) cos(pi t / 2M).
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/algorithms/causal_product/causal_product.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;
using causal_product::Feature;
using causal_product::Form;

class Cosformer : public Mechanism {
 public:
  using Mechanism::Mechanism;

  std::vector<Role> roles() const override { return query_key_value(problem); }

  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    if (problem.pattern != Pattern::causal) return Mechanism::empty_state(batch, 0, tensor);
    return causal_product::empty_state(problem, batch, 2 * problem.head_dim, tensor);
  }
};

struct CosformerCall {
  Tensor query, key, value;  ///< features [B, H, T, 2D], and values
  Form form;
};

/// relu(x) [B, H, T, D] of tokens from `first` on, turned by their positions to [B, H, T, 2D].
Tensor cosformer_features(const Tensor& x, std::int64_t first, std::int64_t reach) {
  if (first + x.size(2) > reach) {
    throw UnsupportedError("cosformer: token " + std::to_string(first + x.size(2)) +
                           " is beyond maximum_length " + std::to_string(reach) +
                           ", where its cosine would be negative; set a greater maximum_length");
  }
  const auto type = compute_type(x.scalar_type());
  const Tensor positions =
      at::arange(first + 1, first + x.size(2) + 1, x.options().dtype(at::kDouble));
  const Tensor angles = positions * (M_PI / 2 / static_cast<double>(reach));
  const Tensor turns = at::stack({angles.sin(), angles.cos()}, -1).to(type).unsqueeze(-1);
  return (at::relu(x.to(type)).unsqueeze(-2) * turns).flatten(-2);
}

CosformerCall cosformer_call(const Mechanism& mechanism, const Inputs& inputs, std::int64_t first) {
  const Options& options = mechanism.options;
  const std::int64_t reach = options.integer("maximum_length");
  return {cosformer_features(inputs["query"], first, reach),
          cosformer_features(without_padding(inputs["key"], inputs.key_mask), first, reach),
          without_padding(inputs["value"], inputs.key_mask)
              .to(compute_type(inputs["value"].scalar_type())),
          {Feature::identity, true, options.number("epsilon")}};
}

/// With values relative to their mean c, y = sum w (v - c) / (sum w + epsilon) + c - c epsilon /
/// (sum w + epsilon): where few keys are seen, y and v are about the same, and the gradient of a
/// weight, which is their difference, would be lost to rounding. c itself is a constant: y does not
/// depend on it.
Tensor cosformer_bidirectional(const CosformerCall& call, const Tensor& key_mask) {
  const Tensor padded = padded_tokens(key_mask);  // [B, 1, S, 1]
  Tensor mean = call.value.detach().sum(2, true);
  mean = padded.defined() ? mean / padded.logical_not().sum(2, true).clamp_min(1)
                          : mean / static_cast<double>(call.value.size(2));
  const Tensor columns = causal_product::columns_of(call.value - mean, call.form);
  const Tensor sums = at::matmul(call.query, at::matmul(call.key.transpose(-2, -1), columns));
  const std::int64_t width = call.value.size(3);
  const Tensor total = sums.narrow(-1, width, 1) + call.form.epsilon;
  return sums.narrow(-1, 0, width) / total + mean * (1 - call.form.epsilon / total);
}

/// A causal form. If `past` [B, H, 2D, Dv + 1] is defined it continues from it and advances it.
using CosformerForm =
    std::function<Tensor(const Mechanism&, const CosformerCall&, const Tensor& past)>;

Mixed mix_cosformer(const CosformerForm& form, Mechanism& mechanism, const Inputs& inputs,
                    State* state) {
  const auto type = inputs["value"].scalar_type();
  const CosformerCall call =
      cosformer_call(mechanism, inputs, state != nullptr ? state->position : 0);
  if (mechanism.problem.pattern != Pattern::causal) {
    if (state) throw UnsupportedError("cosformer: only the causal pattern continues from a state");
    return {cosformer_bidirectional(call, inputs.key_mask).to(type), {}};
  }
  if (!state) return {form(mechanism, call, {}).to(type), {}};
  const at::NoGradGuard no_grad;
  Tensor& sum = (*state)["sum"];
  Tensor& normaliser = (*state)["normaliser"];
  const Tensor past = at::cat({sum, normaliser.unsqueeze(-1)}, -1);
  Mixed mixed{form(mechanism, call, past).to(type), {}};
  sum.copy_(past.narrow(-1, 0, sum.size(-1)));
  normaliser.copy_(past.select(-1, sum.size(-1)));
  state->position += call.value.size(2);
  return mixed;
}

// ---- implementations

/// The cost of the product, and of the features that are made before it.
Cost cosformer_cost(const Problem& problem,
                    const std::function<Cost(const causal_product::ProductSizes&)>& of) {
  const double width = 2 * static_cast<double>(problem.head_dim);
  const causal_product::ProductSizes sizes = causal_product::sizes_of(problem, width);
  Cost cost = of(sizes);
  const double features = sizes.heads * (sizes.queries + sizes.keys) * width;
  cost.minimal_bytes -= features / 2 * sizes.bytes;  // inputs are half as wide as their features
  cost.exponentials = 0;
  cost.workspace_bytes += 1.5 * features * sizes.wide_bytes();
  cost.saved_bytes += 1.5 * features * sizes.wide_bytes();
  return cost;
}

Implementation cosformer_implementation(
    const std::string& name, const std::string& title, const CosformerForm& form,
    const std::function<Cost(const causal_product::ProductSizes&, const Options&, const Problem&)>&
        cost) {
  Implementation implementation = causal_implementation(
      "cosformer", name, title, [form](Mechanism& mechanism, const Inputs& inputs, State* state) {
        return mix_cosformer(form, mechanism, inputs, state);
      });
  implementation.cost = [cost](const Options& options, const Problem& problem) {
    return cosformer_cost(problem, [&](const causal_product::ProductSizes& sizes) {
      return cost(sizes, options, problem);
    });
  };
  implementation.growth.time_in_head_dim = 2;
  return implementation;
}

Tensor fused_cosformer(const CosformerCall& call, const Tensor& past) {
  if (!past.defined()) return causal_product::fused(call.query, call.key, call.value, call.form);
  const std::int64_t width = call.value.size(3);
  const Tensor sum = past.narrow(-1, 0, width).contiguous();
  const Tensor normaliser = past.select(-1, width).contiguous();
  const causal_product::Memory memory{sum, normaliser};
  const Tensor output = causal_product::fused(call.query, call.key, call.value, call.form, &memory);
  past.copy_(at::cat({sum, normaliser.unsqueeze(-1)}, -1));
  return output;
}

std::vector<Implementation> cosformer_implementations() {
  using causal_product::ProductSizes;
  Implementation composite = cosformer_implementation(
      "composite", "cumulative sums of all states at once, in tensor operations",
      [](const Mechanism&, const CosformerCall& call, const Tensor& past) {
        return causal_product::materialised(call.query, call.key, call.value, call.form, past);
      },
      [](const ProductSizes& sizes, const Options&, const Problem&) {
        return causal_product::materialised_cost(sizes);
      });
  composite.supports = supports_all;
  Implementation scan = cosformer_implementation(
      "scan", "token by token, as a recurrent network",
      [](const Mechanism&, const CosformerCall& call, const Tensor& past) {
        return causal_product::scan(call.query, call.key, call.value, call.form, past);
      },
      [](const ProductSizes& sizes, const Options&, const Problem&) {
        return causal_product::scan_cost(sizes);
      });
  scan.rank = -1;
  Implementation chunked = cosformer_implementation(
      "chunked", "matrix products over chunks of tokens",
      [](const Mechanism& self, const CosformerCall& call, const Tensor& past) {
        if (past.defined() && call.value.size(2) < kShortStep) {
          return causal_product::scan(call.query, call.key, call.value, call.form, past);
        }
        return causal_product::chunked(call.query, call.key, call.value, call.form,
                                       self.options.integer("chunk"), past);
      },
      [](const ProductSizes& sizes, const Options& options, const Problem&) {
        return causal_product::chunked_cost(sizes, static_cast<double>(options.integer("chunk")));
      });
  chunked.rank = 10;
  Implementation fused = cosformer_implementation(
      "fused", "features, then one kernel: a token scan over tiles of the state",
      [](const Mechanism&, const CosformerCall& call, const Tensor& past) {
        return fused_cosformer(call, past);
      },
      [](const ProductSizes& sizes, const Options&, const Problem& problem) {
        return causal_product::fused_cost(sizes, problem);
      });
  fused.supports = [](const Options&, const Problem& problem) {
    const Support causal = only_causal("cosformer", problem);
    return causal ? causal_product::fused_supports(problem, 2 * problem.head_dim) : causal;
  };
  fused.rank = 20;
  return {composite, scan, chunked, fused};
}

}  // namespace

Entry cosformer() {
  Entry entry;
  entry.name = "cosformer";
  entry.title = "cosFormer: relu features weighted by the cosine of the distance";
  entry.citation =
      "Qin, Sun, Deng, Li, Wei, Lv, Yan, Kong, Zhong 2022, cosFormer: Rethinking Softmax in "
      "Attention, arXiv:2202.08791";
  entry.formula =
      "w_ts = relu(q_t).relu(k_s) cos(pi/2 (t - s) / M)\n"
      "y_t = sum_s w_ts v_s / (sum_s w_ts + epsilon)";
  entry.options = {
      Option::integer("maximum_length", 16384,
                      "the paper's M, the distance in tokens at which the cosine is 0; no sequence "
                      "may be longer",
                      1),
      Option::number("epsilon", 1e-6, "added to the sum of weights", 1e-30), chunk_option()};
  entry.differs_from = {
      {"the published code does not let the sum of weights fall below 1e-6; here epsilon is added "
       "to it",
       "epsilon=1e-30 takes it away"},
      {"the published code takes M to be the length of each batch",
       "maximum_length says it: with the length of the sequences it is the "
       "published form"}};
  entry.claims.rows_sum_to_one = false;  // where no feature of a query and a key meets, y is 0
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = true;
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.supports = [](const Options& options, const Problem& problem) {
    const std::int64_t tokens = std::max(problem.length, problem.key_length);
    if (options.integer("maximum_length") < tokens) {
      return Support::no("cosformer: maximum_length " +
                         std::to_string(options.integer("maximum_length")) + " is less than the " +
                         std::to_string(tokens) + " tokens; set it to their number at least");
    }
    return unshared_heads("cosformer", problem);
  };
  entry.make = maker<Cosformer>("cosformer");
  entry.implementations = cosformer_implementations();
  return entry;
}

}  // namespace attnbench::mechanisms
