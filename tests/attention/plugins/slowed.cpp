// A mechanism that is slower by as much as one wants, for the study of what a verdict is worth
// (harness/program/compare/README.md): `slowed` is `linear` in its kernel, which then takes
// `percent` % of the tokens once more, so that the slowdown is work of the same kind and no sleep.
#include "attention/plugin/plugin.hpp"

namespace {

using namespace attnbench;

/// The first `tokens` of all inputs.
Inputs beginning_of(const Inputs& inputs, std::int64_t tokens) {
  Inputs part = inputs;
  for (auto& [role, tensor] : part.tensors) tensor = tensor.narrow(2, 0, tokens);
  if (part.key_mask.defined()) part.key_mask = part.key_mask.narrow(1, 0, tokens);
  return part;
}

Implementation slower(Implementation implementation) {
  const auto mix = implementation.mix;
  implementation.mix = [mix](Mechanism& mechanism, const Inputs& inputs, State* state) {
    Mixed mixed = mix(mechanism, inputs, state);
    const std::int64_t percent = mechanism.options.integer("percent");
    const std::int64_t more = inputs["value"].size(2) * percent / 100;
    if (state == nullptr && more > 0) mix(mechanism, beginning_of(inputs, more), nullptr);
    return mixed;
  };
  return implementation;
}

void register_plugin(Registry& registry) {
  Entry entry = registry.entry("linear");
  entry.name = "slowed";
  entry.title = "Linear attention on some tokens more than it has";
  entry.aliases.clear();
  entry.options.push_back(
      Option::integer("percent", 0, "further tokens, in percent of the length", 0, 100));
  entry.implementations = {entry.implementation("composite"),
                           slower(entry.implementation("fused"))};
  registry.add(entry, registry.reference("linear"));
}

}  // namespace

ATTNBENCH_PLUGIN(register_plugin)
