// Sliding-window attention: softmax over the keys s with t - left <= s <= t + right (Beltagy et al.
// 2020). Sides count as in flash-attn, so that a causal window of W keys is left = W - 1.
#include <algorithm>

#include "attention/entry_parts.hpp"
#include "attention/forms/softmax_implementations.hpp"

namespace attnbench::mechanisms {
namespace {

constexpr std::int64_t default_keys = 128;
/// Stands for the default, whose sides depend on the pattern.
constexpr Window unsaid{-1, -1};

class SlidingWindow : public Mechanism {
 public:
  using Mechanism::Mechanism;

  std::vector<Role> roles() const override { return query_key_value(problem); }

  /// The last left + 1 keys and values; token p lies in slot p mod (left + 1).
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    const std::int64_t slots = std::min(capacity, options.window("window").left + 1);
    State state;
    state.tensors["key"] = at::zeros({batch, problem.kv_heads, slots, problem.head_dim}, tensor);
    state.tensors["value"] = at::zeros({batch, problem.kv_heads, slots, problem.value_dim}, tensor);
    return state;
  }
};

/// One tensor of the ring, along its dimension `dim`, and the tokens that come to it.
struct Ring {
  at::Tensor& slots;
  std::int64_t dim;
  std::int64_t position;

  std::int64_t size() const { return slots.size(dim); }
  /// The last `count` tokens before `position`, oldest first, then `fresh`.
  at::Tensor followed_by(const at::Tensor& fresh, std::int64_t count) const {
    if (count == 0) return fresh;
    const auto tokens =
        at::arange(position - count, position, at::TensorOptions(at::kLong).device(slots.device()));
    return at::cat({slots.index_select(dim, tokens.remainder(size())), fresh}, dim);
  }
  void take(const at::Tensor& fresh) {
    const std::int64_t count = std::min(fresh.size(dim), size());
    const std::int64_t end = position + fresh.size(dim);
    const auto tokens =
        at::arange(end - count, end, at::TensorOptions(at::kLong).device(slots.device()));
    slots.index_copy_(dim, tokens.remainder(size()),
                      fresh.narrow(dim, fresh.size(dim) - count, count));
  }
};

/// The call sees the tokens of the ring that the first new query still sees, then the new ones.
void advance(State& state, SoftmaxCall& call) {
  const at::NoGradGuard no_grad;
  if (call.key_mask.defined() && state.tensors.count("key_mask") == 0) {
    state.tensors["key_mask"] =
        at::ones({call.k.size(0), state["key"].size(2)}, call.key_mask.options());
  }
  const auto count = call.length();
  const auto past = std::min({state.position, call.left, state["key"].size(2)});
  const auto advance_one = [&](const char* name, std::int64_t dim, at::Tensor& fresh) {
    Ring ring{state[name], dim, state.position};
    if (count == 1) {
      // Softmax does not ask in which order its keys come: no copy, the ring itself will do.
      ring.take(fresh);
      fresh = ring.slots.narrow(dim, 0, std::min(state.position + 1, ring.size()));
    } else {
      auto all = ring.followed_by(fresh, past);
      ring.take(fresh);
      fresh = all;
    }
  };
  advance_one("key", 2, call.k);
  advance_one("value", 2, call.v);
  if (state.tensors.count("key_mask") != 0) {
    if (!call.key_mask.defined()) {
      call.key_mask = at::ones({call.k.size(0), count}, state["key_mask"].options());
    }
    advance_one("key_mask", 1, call.key_mask);
  }
  state.position += count;
  call.offset = call.key_length() - count;
}

SoftmaxCall call_of(const Mechanism& mechanism, const Inputs& inputs, State* state) {
  SoftmaxCall call{inputs["query"], inputs["key"], inputs["value"], inputs.key_mask,
                   scale_of(mechanism)};
  const Window window = mechanism.options.window("window");
  call.left = window.left;
  call.right = window.right;
  if (state != nullptr) advance(*state, call);
  return call;
}

Window band_of(const Options& options, const Problem&) { return options.window("window"); }

Support supports(const Options&, const Problem& problem) {
  if (problem.pattern == Pattern::cross) {
    return Support::no("cross is undefined, a window needs queries and keys of one sequence");
  }
  return {};
}

Options derive(const Options& options, const Problem& problem) {
  Options derived = options;
  const Window window = options.window("window");
  if (window == unsaid) {
    derived.set("window", problem.pattern == Pattern::causal
                              ? Window{default_keys - 1, 0}
                              : Window{default_keys / 2, default_keys / 2 - 1});
  } else if (problem.pattern == Pattern::causal && window.right != 0) {
    throw UsageError("window: a causal window must have right 0, not " +
                     std::to_string(window.right));
  }
  return derived;
}

}  // namespace

Entry window() {
  Entry entry;
  entry.name = "window";
  entry.title = "Sliding-window attention";
  entry.citation = "Beltagy et al. 2020, Longformer: The Long-Document Transformer, section 3.1";
  entry.options = chunk_options(128, 4096);
  entry.options.insert(
      entry.options.begin(),
      {{"window",
        OptionType::window,
        unsaid,
        "keys seen: 128 means 128 keys, the token itself included; {\"left\", \"right\"} says how "
        "far on each side. Unsaid (-1, -1): 128 keys",
        {},
        {},
        {}},
       scale_option()});
  entry.claims.permutation_equivariant = false;
  entry.claims.last_row_agrees = false;
  entry.patterns = {Pattern::bidirectional, Pattern::causal};
  entry.supports = supports;
  entry.derive = derive;
  entry.make = maker<SlidingWindow>("window");
  const BandedMechanism banded{band_of, call_of,
                               [](const Options& options, const Problem& problem) {
                                 return std::min(problem.length, options.window("window").left + 1);
                               }};
  entry.implementations = {composite_softmax(banded), chunked_softmax(banded),
                           tiled_softmax(banded)};
  for (auto& implementation : entry.implementations) {
    if (implementation.name == "composite") continue;
    implementation.growth.time_in_length = 1;
    implementation.growth.workspace_in_length = 0;  // one band of keys at a time
  }
  return entry;
}

}  // namespace attnbench::mechanisms
