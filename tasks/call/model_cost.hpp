// What a whole model costs around its attention layers.
#pragma once

#include "tasks/call/settings.hpp"

namespace attnbench::tasks::call {

/// `layer`: of the timed pass of one attention layer; `weight_bytes`: of all that one such layer
/// has. MLPs, head and their backward passes are added; norms and activations, which cost a few
/// operations per number, are not. The least bytes are those of weights and logits: what goes from
/// block to block need not leave the chip.
Cost model_cost(const Cost& layer, double weight_bytes, const Settings& settings);

/// All tensors at the worst moment, from the prediction `mix_bytes` for one mix and its projected
/// inputs, `mix_saved_bytes` of what it keeps for its backward pass, and the weights of one layer.
double model_peak_bytes(double mix_bytes, double mix_saved_bytes, double weight_bytes,
                        const Settings& settings);

}  // namespace attnbench::tasks::call
