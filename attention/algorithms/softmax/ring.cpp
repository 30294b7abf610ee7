#include "attention/algorithms/softmax/ring.hpp"

#include <algorithm>

namespace attnbench {
namespace {

constexpr std::int64_t default_keys = 128;
/// Stands for the default, whose sides depend on the pattern.
constexpr Window unsaid{-1, -1};

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

}  // namespace

void add_rings(State& state, const Problem& problem, std::int64_t batch, std::int64_t capacity,
               std::int64_t left, const at::TensorOptions& tensor) {
  const std::int64_t slots = std::min(capacity, left + 1);
  state.tensors["key"] = at::zeros({batch, problem.kv_heads, slots, problem.head_dim}, tensor);
  state.tensors["value"] = at::zeros({batch, problem.kv_heads, slots, problem.value_dim}, tensor);
}

void take_into_rings(State& state, SoftmaxCall& call) {
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
  call.offset = call.key_length() - count;
}

Option window_option() {
  return {"window",
          OptionType::window,
          unsaid,
          "keys seen: 128 means 128 keys, the token itself included; {\"left\", \"right\"} says "
          "how far on each side. Unsaid (-1, -1): 128 keys",
          {},
          {},
          {}};
}

Options derive_window(const Options& options, const Problem& problem) {
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

}  // namespace attnbench
