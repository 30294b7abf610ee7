// Linear attention with phi(x) = elu(x) + 1, Katharopoulos et al. 2020:
//   y_t = phi(q_t)^T S_t / (phi(q_t).z_t + epsilon),  S_t = sum phi(k_s) v_s^T,  z_t = sum
//   phi(k_s).
// The values have an additional column of ones, so that S and z are one matrix and both sums one
// product.
#include <limits>

#include "attention/algorithms/causal_product/causal_product.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;
using causal_product::Feature;
using causal_product::Form;

class Linear : public Mechanism {
 public:
  using Mechanism::Mechanism;

  std::vector<Role> roles() const override { return query_key_value(problem); }

  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    if (problem.pattern != Pattern::causal) return Mechanism::empty_state(batch, 0, tensor);
    return causal_product::empty_state(problem, batch, problem.head_dim, tensor);
  }
};

/// The three inputs; at padding keys of -inf, whose features are 0, and values of 0.
struct Call {
  Tensor query, key, value;
  Form form;
};

Call call_of(const Mechanism& mechanism, const Inputs& inputs) {
  Call call{inputs["query"],
            inputs["key"],
            inputs["value"],
            {Feature::elu_plus_one, true, mechanism.options.number("epsilon")}};
  call.key = without_padding(call.key, inputs.key_mask, -std::numeric_limits<double>::infinity());
  call.value = without_padding(call.value, inputs.key_mask);
  return call;
}

Tensor bidirectional(const Call& call) {
  const auto type = compute_type(call.value.scalar_type());
  const Tensor keys = causal_product::feature_of(call.key.to(type), call.form.feature);
  const Tensor queries = causal_product::feature_of(call.query.to(type), call.form.feature);
  const Tensor columns = causal_product::columns_of(call.value.to(type), call.form);
  const Tensor sum = at::matmul(keys.transpose(-2, -1), columns);
  return causal_product::result_of(at::matmul(queries, sum), call.form)
      .to(call.value.scalar_type());
}

/// A causal form. If `past` [B, H, F, Dv + 1] is defined it continues from it and advances it.
using Causal = std::function<Tensor(const Mechanism&, const Call&, const Tensor& past)>;

Mixed mix_with(const Causal& causal, Mechanism& mechanism, const Inputs& inputs, State* state) {
  const Call call = call_of(mechanism, inputs);
  if (mechanism.problem.pattern != Pattern::causal) {
    if (state) throw UnsupportedError("linear: only the causal pattern continues from a state");
    return {bidirectional(call), {}};
  }
  if (!state) return {causal(mechanism, call, {}), {}};
  const at::NoGradGuard no_grad;
  Tensor& sum = (*state)["sum"];
  Tensor& normaliser = (*state)["normaliser"];
  const Tensor past = at::cat({sum, normaliser.unsqueeze(-1)}, -1);
  Mixed mixed{causal(mechanism, call, past), {}};
  sum.copy_(past.narrow(-1, 0, sum.size(-1)));
  normaliser.copy_(past.select(-1, sum.size(-1)));
  state->position += call.value.size(2);
  return mixed;
}

// ---- implementations

causal_product::ProductSizes sizes_of(const Problem& problem) {
  return causal_product::sizes_of(problem, static_cast<double>(problem.head_dim));
}

Implementation implementation_of(const std::string& name, const std::string& title,
                                 const Causal& causal) {
  return causal_implementation("linear", name, title,
                               [causal](Mechanism& mechanism, const Inputs& inputs, State* state) {
                                 return mix_with(causal, mechanism, inputs, state);
                               });
}

Implementation composite() {
  const Causal causal = [](const Mechanism&, const Call& call, const Tensor& past) {
    return causal_product::materialised(call.query, call.key, call.value, call.form, past);
  };
  Implementation implementation = implementation_of(
      "composite", "cumulative sums of all states at once, in tensor operations", causal);
  implementation.supports = supports_all;
  implementation.cost = [](const Options&, const Problem& problem) {
    return causal_product::materialised_cost(sizes_of(problem));
  };
  // There are as many features as head_dim.
  implementation.growth = {.time_in_head_dim = 2, .workspace_in_head_dim = 2};
  return implementation;
}

Implementation scan() {
  const Causal causal = [](const Mechanism&, const Call& call, const Tensor& past) {
    return causal_product::scan(call.query, call.key, call.value, call.form, past);
  };
  Implementation implementation =
      implementation_of("scan", "token by token, as a recurrent network", causal);
  implementation.cost = [](const Options&, const Problem& problem) {
    return causal_product::scan_cost(sizes_of(problem));
  };
  implementation.growth = {.workspace_in_length = 0, .time_in_head_dim = 2};
  implementation.rank = -1;
  return implementation;
}

Implementation chunked() {
  const Causal causal = [](const Mechanism& self, const Call& call, const Tensor& past) {
    if (past.defined() && call.value.size(2) < kShortStep) {
      return causal_product::scan(call.query, call.key, call.value, call.form, past);
    }
    return causal_product::chunked(call.query, call.key, call.value, call.form,
                                   self.options.integer("chunk"), past);
  };
  Implementation implementation =
      implementation_of("chunked", "matrix products over chunks of tokens", causal);
  implementation.cost = [](const Options& options, const Problem& problem) {
    return causal_product::chunked_cost(sizes_of(problem),
                                        static_cast<double>(options.integer("chunk")));
  };
  implementation.growth = {.workspace_in_length = 0, .time_in_head_dim = 2};
  implementation.rank = 10;
  return implementation;
}

/// The kernel updates the tensors of the state.
Mixed mix_fused(Mechanism& mechanism, const Inputs& inputs, State* state) {
  const Causal causal = [](const Mechanism&, const Call& call, const Tensor&) {
    return causal_product::fused(call.query, call.key, call.value, call.form);
  };
  if (!state || mechanism.problem.pattern != Pattern::causal) {
    return mix_with(causal, mechanism, inputs, state);
  }
  const Call call = call_of(mechanism, inputs);
  const causal_product::Memory memory{(*state)["sum"], (*state)["normaliser"]};
  Mixed mixed{causal_product::fused(call.query, call.key, call.value, call.form, &memory), {}};
  state->position += call.value.size(2);
  return mixed;
}

Implementation fused() {
  Implementation implementation = causal_implementation(
      "linear", "fused", "one kernel: a token scan over tiles of the state", mix_fused);
  implementation.supports = [](const Options&, const Problem& problem) {
    const Support causal_only = only_causal("linear", problem);
    return causal_only ? causal_product::fused_supports(problem, problem.head_dim) : causal_only;
  };
  implementation.cost = [](const Options&, const Problem& problem) {
    return causal_product::fused_cost(sizes_of(problem), problem);
  };
  implementation.growth = {.workspace_in_length = 0, .time_in_head_dim = 2};
  implementation.rank = 20;
  return implementation;
}

}  // namespace

Entry linear() {
  Entry entry;
  entry.name = "linear";
  entry.title = "Linear attention, elu(x) + 1";
  entry.citation =
      "Katharopoulos, Vyas, Pappas, Fleuret 2020, Transformers are RNNs: Fast Autoregressive "
      "Transformers with Linear Attention, arXiv:2006.16236";
  entry.differs_from = {
      {"the paper's equations have no epsilon, which weighs where features are small: one token "
       "whose "
       "query and key are -8 in all of 64 channels has 0.88 of the definition's output, of -10 "
       "0.12",
       "epsilon=0 gives the paper's form, and 0 where no token is visible"},
      {"the paper names a polynomial feature map and relu beside elu(x) + 1 (section 3.2.1), Latte "
       "v2's undirected model exp(x)",
       "not available"}};
  entry.options = {Option::number("epsilon", 1e-6, "added to the sum of weights", 0),
                   chunk_option()};
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.supports = [](const Options&, const Problem& problem) {
    return unshared_heads("linear", problem);
  };
  entry.make = maker<Linear>("linear");
  entry.implementations = {composite(), scan(), chunked(), fused()};
  return entry;
}

}  // namespace attnbench::mechanisms
