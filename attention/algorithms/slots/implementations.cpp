#include "attention/algorithms/slots/implementations.hpp"

#include "attention/entry_parts.hpp"

namespace attnbench::slots {
namespace {

using at::Tensor;
using Causal = std::function<Tensor(const Mechanism&, const Call&, Memory*)>;
using Whole = std::function<Mixed(const Mechanism&, const Inputs&)>;

Mixed mix_with(const SlotMechanism& self, const Causal& causal, const Whole& whole,
               const Mechanism& mechanism, const Inputs& inputs, State* state) {
  if (mechanism.problem.pattern != Pattern::causal) {
    if (state) throw UnsupportedError(self.name + ": only the causal pattern has a state");
    return whole(mechanism, inputs);
  }
  Call call = self.call(mechanism, inputs);
  call.hidden = padded_tokens(inputs.key_mask);
  if (!state) return {causal(mechanism, call, nullptr), {}};
  const at::NoGradGuard no_grad;
  Memory memory{{}, (*state)["normaliser"], (*state)["sum"]};
  if (state->tensors.count("maximum") != 0) memory.maximum = (*state)["maximum"];
  Mixed mixed{causal(mechanism, call, &memory), {}};
  state->position += call.query.size(2);
  return mixed;
}

Implementation implementation_of(const SlotMechanism& self, const std::string& name,
                                 const std::string& title, const Causal& causal,
                                 const Whole& whole) {
  return causal_implementation(
      self.name, name, title,
      [self, causal, whole](Mechanism& mechanism, const Inputs& inputs, State* state) {
        return mix_with(self, causal, whole, mechanism, inputs, state);
      });
}

Implementation composite(const SlotMechanism& self) {
  Implementation implementation = implementation_of(
      self, "composite",
      "two softmaxes, or the memories of all tokens at once, in tensor operations",
      [self](const Mechanism& mechanism, const Call& call, Memory* memory) {
        return materialised(call, self.form(mechanism), memory);
      },
      self.whole);
  implementation.supports = supports_all;
  implementation.cost = [self](const Options& options, const Problem& problem) {
    return problem.pattern == Pattern::causal ? materialised_cost(self.sizes(options, problem))
                                              : self.whole_cost(options, problem);
  };
  // Below 2048 tokens the memories fit into the caches.
  implementation.growth = {.time_in_length = 1,
                           .workspace_in_length = 1,
                           .time_in_latents = 1,
                           .workspace_in_latents = 1,
                           .from_length = 2048};
  return implementation;
}

/// By chunks of this many tokens; chunks of one are the recurrence.
Implementation by_chunks(const SlotMechanism& self, const std::string& name,
                         const std::string& title,
                         const std::function<std::int64_t(const Options&)>& chunk) {
  Implementation implementation = implementation_of(
      self, name, title,
      [self, chunk](const Mechanism& mechanism, const Call& call, Memory* memory) {
        return chunked(call, self.form(mechanism), chunk(mechanism.options), memory);
      },
      self.whole);
  implementation.cost = [self, chunk](const Options& options, const Problem& problem) {
    return chunked_cost(self.sizes(options, problem), static_cast<double>(chunk(options)));
  };
  implementation.growth = {.time_in_length = 1,
                           .workspace_in_length = 0,
                           .time_in_latents = 1,
                           .workspace_in_latents = 1};
  return implementation;
}

Implementation in_kernels(const SlotMechanism& self) {
  Implementation implementation = implementation_of(
      self, "fused", "the kernels of softmax, or two causal products in one kernel each",
      [self](const Mechanism& mechanism, const Call& call, Memory* memory) {
        return fused(call, self.form(mechanism), memory);
      },
      self.whole_tiled);
  implementation.supports = [self](const Options& options, const Problem& problem) {
    const Sizes sizes = self.sizes(options, problem);
    return problem.pattern == Pattern::causal ? fused_supports(sizes) : tiled_supports(sizes);
  };
  implementation.cost = [self](const Options& options, const Problem& problem) {
    return problem.pattern == Pattern::causal ? fused_cost(self.sizes(options, problem))
                                              : self.whole_tiled_cost(options, problem);
  };
  implementation.growth = {.time_in_length = 1,
                           .workspace_in_length = 0,
                           .time_in_latents = 1,
                           .workspace_in_latents = 1,
                           .from_length = kGrowingTogether};
  implementation.rank = 20;
  return implementation;
}

}  // namespace

std::vector<Implementation> implementations(const SlotMechanism& mechanism) {
  Implementation scan = by_chunks(mechanism, "scan", "token by token, as a recurrent network",
                                  [](const Options&) { return 1; });
  scan.rank = -1;
  Implementation products =
      by_chunks(mechanism, "chunked", "matrix products over chunks of tokens",
                [](const Options& options) { return options.integer("chunk"); });
  products.rank = 10;
  return {composite(mechanism), scan, products, in_kernels(mechanism)};
}

State empty_state(const Form& form, const std::vector<std::int64_t>& sum_sizes,
                  const at::TensorOptions& tensor) {
  const Memory memory = empty_memory(form, sum_sizes, tensor);
  State state;
  if (memory.maximum.defined()) state.tensors["maximum"] = memory.maximum;
  state.tensors["normaliser"] = memory.normaliser;
  state.tensors["sum"] = memory.sum;
  return state;
}

}  // namespace attnbench::slots
