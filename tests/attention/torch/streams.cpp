// Long streams: a state neither grows nor drifts over a hundred thousand tokens, at night a
// million. For every registered mechanism that has a state; that it gives what the whole sequence
// gives is the conformance kit's.
#include <malloc.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "attention/layer.hpp"
#include "attention/registry.hpp"
#include "tests/attention/fixture.hpp"
#include "tests/attention/memory_count.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/tier.hpp"

using namespace attnbench;
using test::relative_error;

namespace {

const Registry& builtins() {
  static const Registry registry = Registry::with_builtins();
  return registry;
}

Problem causal(std::int64_t length, Dtype dtype, std::int64_t heads = 2) {
  Problem problem;
  problem.heads = problem.kv_heads = heads;
  problem.length = problem.key_length = length;
  problem.head_dim = problem.value_dim = 4;
  problem.dtype = dtype;
  return problem;
}

/// A mechanism with its options for a problem; nothing where it has no state for it.
struct Streamed {
  const Entry* entry = nullptr;
  Options options;
  std::shared_ptr<Mechanism> mechanism;

  State empty_state(std::int64_t capacity) const {
    return mechanism->empty_state(mechanism->problem.batch, capacity,
                                  at::TensorOptions(scalar_type(mechanism->problem.dtype)));
  }
};

std::optional<Streamed> streamed(const std::string& name, const Problem& problem) {
  Streamed made;
  made.entry = &builtins().entry(name);
  const auto& patterns = made.entry->patterns;
  if (std::find(patterns.begin(), patterns.end(), problem.pattern) == patterns.end()) return {};
  std::map<std::string, OptionValue> said;
  for (const Option& option : made.entry->options) {
    // A bound on the position, which is set before the stream begins.
    if (option.name == "maximum_length") said[option.name] = std::int64_t{2000000};
  }
  made.options = made.entry->derive(Options::resolve(made.entry->options, said), problem);
  if (!made.entry->supports(made.options, problem)) return {};
  made.mechanism = made.entry->make(made.options, problem);
  try {
    made.empty_state(problem.length);
  } catch (const UnsupportedError&) {
    return {};
  }
  return made;
}

/// In use on the heap. The resident set would say more, and come and go with what ran before.
std::int64_t heap_bytes() {
  const auto heap = mallinfo2();
  return static_cast<std::int64_t>(heap.uordblks + heap.hblkhd);
}

/// How far the normaliser in float32 is from that in double, both relative to zero; 0 where a state
/// has none.
double drift_of(State& narrow, State& wide) {
  if (narrow.tensors.count("normaliser") == 0) return 0;
  at::Tensor ratio = narrow["normaliser"].to(at::kDouble) / wide["normaliser"];
  if (narrow.tensors.count("maximum") != 0) {
    ratio = ratio * (narrow["maximum"].to(at::kDouble) - wide["maximum"]).exp();
  }
  return (ratio - 1).abs().max().item<double>();
}

}  // namespace

TEST_CASE("streams: tokens of 16 bits are summed in float32") {
  int seen = 0;
  for (const auto& name : builtins().mechanisms()) {
    const auto made = streamed(name, causal(16, Dtype::bfloat16));
    if (!made) continue;
    for (const auto& [part, tensor] : made->empty_state(16).tensors) {
      if (part != "sum" && part != "memory" && part != "normaliser" && part != "maximum") continue;
      CAPTURE(name, part);
      CHECK(tensor.scalar_type() == at::kFloat);
      ++seen;
    }
  }
  CHECK(seen >= 10);
}

TEST_CASE("streams: long ones neither grow the memory nor drift") {
  const at::NoGradGuard no_grad;
  constexpr std::int64_t kBlock = 2000, kWarm = 10000;
  const std::int64_t tokens = test::at_night() ? 1000000 : 100000;
  int seen = 0;
  for (const auto& name : builtins().mechanisms()) {
    const auto made = streamed(name, causal(kBlock, Dtype::float32, 1));
    const auto exact = streamed(name, causal(kBlock, Dtype::float64, 1));
    // Softmax keeps every key: its state is as large as its capacity.
    if (!made || made->empty_state(kWarm).bytes() != made->empty_state(tokens).bytes()) continue;
    ++seen;
    CAPTURE(name);
    const auto& implementation =
        *Registry::choose(*made->entry, "auto", made->options, made->mechanism->problem)
             .implementation;
    State state = made->empty_state(tokens);
    State wide = exact->empty_state(tokens);
    // The same parameters in both, those of float32.
    const auto from = made->mechanism->named_parameters();
    for (auto& item : exact->mechanism->named_parameters()) item.value().copy_(from[item.key()]);
    const auto buffers = made->mechanism->named_buffers();
    for (auto& item : exact->mechanism->named_buffers()) item.value().copy_(buffers[item.key()]);
    const Inputs first = random_inputs(*made->mechanism, 1, 1.0, false);
    const test::MemoryCount count;
    std::int64_t heap = 0, live = 0;
    double error = 0;
    while (state.position < tokens) {
      Inputs inputs =
          random_inputs(*made->mechanism, static_cast<std::uint64_t>(state.position), 1.0, false);
      for (const Role& role : made->mechanism->roles()) {
        // The stream of latents is the same for all of a sequence.
        if (role.source == Source::latent_stream) inputs.tensors[role.name] = first[role.name];
      }
      Inputs doubled;
      for (const auto& [role, tensor] : inputs.tensors) {
        doubled.tensors[role] = tensor.to(at::kDouble);
      }
      const at::Tensor y = implementation.mix(*made->mechanism, inputs, &state).output;
      const at::Tensor want = implementation.mix(*exact->mechanism, doubled, &wide).output;
      error = relative_error(y, want);
      if (state.position == kWarm) live = count.live();
      if (state.position == kWarm) heap = heap_bytes();
      if (state.position == tokens) CHECK(count.live() == live);
    }
    // After the first five blocks a kibibyte of each would stand out.
    const std::int64_t growth = heap_bytes() - heap;
    CAPTURE(growth, error);
    CHECK(growth < (tokens - kWarm) / kBlock * 1024);
    CHECK(error < 1e-4);
    const double drift = drift_of(state, wide);
    CAPTURE(drift);
    CHECK(drift < 1e-4);
  }
  CHECK(seen >= 4);
}
