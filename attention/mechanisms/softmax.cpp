// Softmax attention, Vaswani et al. 2017.
#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

class Softmax : public Mechanism {
 public:
  using Mechanism::Mechanism;

  std::vector<Role> roles() const override { return query_key_value(problem); }

  /// All keys and values seen.
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    State state;
    add_cache(state, problem, batch, capacity, tensor);
    return state;
  }
};

SoftmaxCall call_of(const Mechanism& mechanism, const Inputs& inputs, State* state) {
  SoftmaxCall call{inputs["query"], inputs["key"], inputs["value"], inputs.key_mask,
                   scale_of(mechanism)};
  if (state != nullptr) take_into_cache("softmax", *state, call);
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
