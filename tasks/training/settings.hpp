// Settings: what tasks that train let their user choose, data apart.
#pragma once

#include <vector>

#include "core/option.hpp"
#include "tasks/training/model_options.hpp"
#include "tasks/training/trainer.hpp"

namespace attnbench::tasks::learning {

/// Sizes of the tensors, the model around the mechanism, the optimiser and its schedule. A
/// published protocol is a preset of suites/form/presets.json over these.
std::vector<Option> learning_settings();

/// layers, vocabulary, mlp, mlp_width, norm, tied_head; the others keep their defaults where a task
/// does not have them.
ModelOptions model_options_from(const Options& settings);

/// `run_seed` is that of the whole run: another one gives other orders and dropout.
TrainerOptions trainer_options_from(const Options& settings, std::uint64_t run_seed);

}  // namespace attnbench::tasks::learning
