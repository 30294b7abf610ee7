// Softmax attention, Vaswani et al. 2017: y_t = sum_s softmax_s(scale q_t.k_s) v_s.
#include <cmath>

#include "attention/mechanism.hpp"
#include "attention/softmax_forms.hpp"

namespace attnbench::mechanisms {
namespace {

class Softmax : public Mechanism {
 public:
  using Mechanism::Mechanism;

  std::vector<Role> roles() const override {
    return {{"q", Source::query_tokens, problem.head_dim},
            {"k", Source::key_tokens, problem.head_dim},
            {"v", Source::key_tokens, problem.value_dim}};
  }

  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    State state;
    state.tensors["k"] = at::zeros({batch, problem.kv_heads, capacity, problem.head_dim}, tensor);
    state.tensors["v"] = at::zeros({batch, problem.kv_heads, capacity, problem.value_dim}, tensor);
    return state;
  }
};

/// Appends the new keys and values to the state and points the call at all of them.
void append(State& state, SoftmaxCall& call) {
  const at::NoGradGuard no_grad;
  const auto begin = state.position;
  const auto count = call.k.size(2);
  const auto capacity = state["k"].size(2);
  if (begin + count > capacity) {
    throw UsageError("softmax: the state holds " + std::to_string(capacity) +
                     " tokens and cannot take " + std::to_string(begin + count));
  }
  const auto batch = call.k.size(0);
  if (call.key_mask.defined() && state.tensors.count("key_mask") == 0) {
    state.tensors["key_mask"] = at::ones({batch, capacity}, call.key_mask.options());
  }
  state["k"].narrow(2, begin, count).copy_(call.k);
  state["v"].narrow(2, begin, count).copy_(call.v);
  if (call.key_mask.defined()) state["key_mask"].narrow(1, begin, count).copy_(call.key_mask);
  state.position = begin + count;
  call.k = state["k"].narrow(2, 0, state.position);
  call.v = state["v"].narrow(2, 0, state.position);
  if (state.tensors.count("key_mask") != 0) {
    call.key_mask = state["key_mask"].narrow(1, 0, state.position);
  }
}

SoftmaxCall call_of(const Mechanism& mechanism, const Inputs& inputs, State* state) {
  const Problem& problem = mechanism.problem;
  SoftmaxCall call{inputs["q"], inputs["k"], inputs["v"], inputs.key_mask};
  call.scale = mechanism.options.number("scale");
  if (call.scale == 0) call.scale = 1 / std::sqrt(static_cast<double>(problem.head_dim));
  if (state != nullptr) append(*state, call);
  if (problem.pattern == Pattern::causal) {
    call.right = 0;
    call.offset = call.key_length() - call.length();
  }
  return call;
}

Support everywhere(const Options&, const Problem& problem) {
  if (problem.dtype == Dtype::float16 && problem.device == "cpu") {
    return Support::no("LibTorch multiplies no float16 matrices on the CPU");
  }
  return {};
}

/// What is the same however it is computed.
Cost common_cost(const Problem& problem) {
  const double heads = static_cast<double>(problem.batch * problem.heads);
  const double kv_heads = static_cast<double>(problem.batch * problem.kv_heads);
  const double bytes = static_cast<double>(bytes_of(problem.dtype));
  const double dims = static_cast<double>(problem.head_dim + problem.value_dim);
  Cost cost;
  cost.model_flops = 2 * dims * heads * static_cast<double>(visible_pairs(problem));
  cost.minimal_bytes = dims * bytes *
                       (heads * static_cast<double>(problem.length) +
                        kv_heads * static_cast<double>(problem.key_length));
  cost.state_bytes = dims * bytes * kv_heads * static_cast<double>(problem.length);
  return cost;
}

Cost composite_cost(const Options&, const Problem& problem) {
  Cost cost = common_cost(problem);
  const double bytes = static_cast<double>(bytes_of(problem.dtype));
  const double heads = static_cast<double>(problem.batch * problem.heads);
  const double square =
      static_cast<double>(problem.length) * static_cast<double>(problem.key_length);
  const double dims = static_cast<double>(problem.head_dim + problem.value_dim);
  const double mask = problem.pattern == Pattern::causal ? square : 0;
  double inputs = heads * static_cast<double>(problem.length * problem.head_dim) * bytes;
  if (problem.kv_heads != problem.heads) {
    inputs += heads * static_cast<double>(problem.key_length) * dims * bytes;
  }
  cost.executed_flops = 2 * dims * heads * square;
  cost.exponentials = heads * square;
  cost.workspace_bytes = 2 * heads * square * bytes + mask + inputs;
  cost.saved_bytes = heads * square * bytes + mask + inputs;
  cost.backward_flops = 2.0;
  return cost;
}

Implementation composite() {
  Implementation implementation;
  implementation.name = "composite";
  implementation.title = "whole score matrices in tensor operations";
  implementation.supports = everywhere;
  implementation.mix = [](Mechanism& mechanism, const Inputs& inputs, State* state) {
    return Mixed{softmax_composite(call_of(mechanism, inputs, state)), {}};
  };
  implementation.cost = composite_cost;
  implementation.growth = {2, 2, 0, 0};
  return implementation;
}

}  // namespace

Entry softmax() {
  Entry entry;
  entry.name = "softmax";
  entry.title = "Softmax attention";
  entry.citation = "Vaswani et al. 2017, Attention Is All You Need, equation 1";
  entry.options = {{"scale",
                    OptionType::number,
                    0.0,
                    "factor on q.k before the softmax; 0 = 1/sqrt(head_dim)",
                    {},
                    {},
                    {}}};
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.supports = [](const Options&, const Problem&) { return Support{}; };
  entry.derive = [](const Options& options, const Problem&) { return options; };
  entry.make = [](const Options& options, const Problem& problem) {
    return std::make_shared<Softmax>("softmax", options, problem);
  };
  entry.implementations = {composite()};
  return entry;
}

}  // namespace attnbench::mechanisms
