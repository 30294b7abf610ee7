// Sliding-window attention: softmax over the keys s with t - left <= s <= t + right (Beltagy et al.
// 2020). Sides are counted as in flash-attn: a causal window of W keys has left = W - 1.
#include <algorithm>

#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

class SlidingWindow : public Mechanism {
 public:
  using Mechanism::Mechanism;

  std::vector<Role> roles() const override { return query_key_value(problem); }

  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    State state;
    add_rings(state, problem, batch, capacity, options.window("window").left, tensor);
    return state;
  }
};

SoftmaxCall call_of(const Mechanism& mechanism, const Inputs& inputs, State* state) {
  SoftmaxCall call{inputs["query"], inputs["key"], inputs["value"], inputs.key_mask,
                   scale_of(mechanism)};
  const Window window = mechanism.options.window("window");
  call.left = window.left;
  call.right = window.right;
  if (state != nullptr) {
    take_into_rings(*state, call);
    state->position += call.length();
  }
  return call;
}

Window band_of(const Options& options, const Problem&) { return options.window("window"); }

Support supports(const Options&, const Problem& problem) {
  if (problem.pattern == Pattern::cross) {
    return Support::no("cross is undefined, a window needs queries and keys of one sequence");
  }
  return {};
}

}  // namespace

Entry window() {
  Entry entry;
  entry.name = "window";
  entry.title = "Sliding-window attention";
  entry.citation = "Beltagy et al. 2020, Longformer: The Long-Document Transformer, section 3.1";
  entry.options = chunk_options({window_option(), scale_option()}, 128, 4096);
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::bidirectional, Pattern::causal};
  entry.supports = supports;
  entry.derive = derive_window;
  entry.make = maker<SlidingWindow>("window");
  entry.implementations = softmax_implementations(
      {band_of, call_of, [](const Options& options, const Problem& problem) {
         return std::min(problem.length, options.window("window").left + 1);
       }});
  for (auto& implementation : entry.implementations) {
    const std::string& name = implementation.name;
    if (name == "composite" || name.rfind("torch_sdpa", 0) == 0) continue;  // T x S masks
    implementation.growth.time_in_length = 1;
    implementation.growth.workspace_in_length = 0;  // one band of keys at a time
    if (name == "tiled") implementation.growth.from_length = kGrowingItems;
  }
  return entry;
}

}  // namespace attnbench::mechanisms
