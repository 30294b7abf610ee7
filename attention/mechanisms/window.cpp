// Sliding-window attention, Beltagy et al. 2020. Sides are counted as in flash-attn: a causal
// window of W keys has left = W - 1.
#include <algorithm>

#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/algorithms/tokens/token_mix.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

/// The chunk of the recurrence that may come before.
constexpr std::int64_t kRecurrenceChunk = 64;

class SlidingWindow : public MixesTokens {
 public:
  SlidingWindow(const std::string& name, const Options& chosen, const Problem& asked)
      : MixesTokens(name, chosen, asked, kRecurrenceChunk) {}

  std::vector<Role> roles() const override {
    std::vector<Role> roles = query_key_value(problem);
    for (Role& role : roles) {
      if (role.name != "value") role.feed = fed();
    }
    return roles;
  }

  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    State state;
    add_rings(state, problem, batch, capacity, options.window("window").left, tensor);
    add_mix_state(state, batch, tensor);
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

Support supports(const Options& options, const Problem& problem) {
  if (problem.pattern == Pattern::cross) {
    return Support::no("cross is undefined, a window needs queries and keys of one sequence");
  }
  return token_mix_support("window", options, problem);
}

/// With before=rg_lru and before_norm it is the R-SWA++ of Latte v2, section 5.2: queries and keys
/// of the normalised recurrence, values of the tokens.
std::vector<Option> options() {
  std::vector<Option> first{window_option(), scale_option()};
  for (Option& each : token_mix_options("queries and keys")) first.push_back(std::move(each));
  return chunk_options(std::move(first), 128, 4096);
}

}  // namespace

Entry window() {
  Entry entry;
  entry.name = "window";
  entry.title = "Sliding-window attention";
  entry.citation = "Beltagy et al. 2020, Longformer: The Long-Document Transformer, section 3.1";
  entry.formula = "y_t = sum_s softmax_s(scale q_t.k_s) v_s,  t - left <= s <= t + right";
  entry.options = options();
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
