// Softmax attention, Vaswani et al. 2017.
#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

class Softmax : public Mechanism {
 public:
  using Mechanism::Mechanism;

  std::vector<Role> roles() const override { return query_key_value(problem); }

  /// All keys and values seen, k [B, G, capacity, D] and v [B, G, capacity, Dv].
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    State state;
    state.tensors["key"] = at::zeros({batch, problem.kv_heads, capacity, problem.head_dim}, tensor);
    state.tensors["value"] =
        at::zeros({batch, problem.kv_heads, capacity, problem.value_dim}, tensor);
    return state;
  }
};

/// Appends the new keys and values to the state and replaces those of the call by all of them. The
/// mask is stored once one is given.
void append(State& state, SoftmaxCall& call) {
  const at::NoGradGuard no_grad;
  const auto begin = state.position;
  const auto count = call.key_length();
  const auto capacity = state["key"].size(2);
  if (begin + count > capacity) {
    throw UsageError("softmax: the state has room for " + std::to_string(capacity) +
                     " tokens, not for " + std::to_string(begin + count));
  }
  if (call.key_mask.defined() && state.tensors.count("key_mask") == 0) {
    state.tensors["key_mask"] = at::ones({call.k.size(0), capacity}, call.key_mask.options());
  }
  state["key"].narrow(2, begin, count).copy_(call.k);
  state["value"].narrow(2, begin, count).copy_(call.v);
  state.position = begin + count;
  call.k = state["key"].narrow(2, 0, state.position);
  call.v = state["value"].narrow(2, 0, state.position);
  if (state.tensors.count("key_mask") == 0) return;
  auto& mask = state["key_mask"];
  if (call.key_mask.defined()) mask.narrow(1, begin, count).copy_(call.key_mask);
  call.key_mask = mask.narrow(1, 0, state.position);
}

SoftmaxCall call_of(const Mechanism& mechanism, const Inputs& inputs, State* state) {
  SoftmaxCall call{inputs["query"], inputs["key"], inputs["value"], inputs.key_mask,
                   scale_of(mechanism)};
  if (state != nullptr) append(*state, call);
  if (mechanism.problem.pattern == Pattern::causal) {
    // Aligned to the bottom right: the last query is at the last key.
    call.right = 0;
    call.offset = call.key_length() - call.length();
  }
  return call;
}

Window band_of(const Options&, const Problem& problem) {
  return {unlimited, problem.pattern == Pattern::causal ? 0 : unlimited};
}

}  // namespace

Entry softmax() {
  Entry entry;
  entry.name = "softmax";
  entry.title = "Softmax attention";
  entry.citation = "Vaswani et al. 2017, Attention Is All You Need, equation 1";
  entry.formula = "y_t = sum_s softmax_s(scale q_t.k_s) v_s,  over the tokens s that t sees";
  entry.options = chunk_options({scale_option()}, 1024, 4096);
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.make = maker<Softmax>("softmax");
  entry.implementations = softmax_implementations(
      {band_of, call_of, [](const Options&, const Problem& problem) { return problem.length; }});
  entry.aliases = {{"flash", "softmax", "tiled", {}, "Softmax attention in tiles, never T x T"},
                   {"chunked_softmax", "softmax", "chunked", {}, "Softmax attention in chunks"}};
  return entry;
}

}  // namespace attnbench::mechanisms
