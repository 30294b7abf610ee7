// How a model is trained, as settings choose it.
#pragma once

#include <functional>
#include <vector>

#include "core/option.hpp"
#include "tasks/training/optimiser.hpp"

namespace attnbench::tasks::training {

/// The weights that are scored. last: the weights after the last step. best_validation: those of
/// the evaluation with the greatest validation accuracy (of language models: the least validation
/// loss), the first of equal ones.
enum class Keep { last, best_validation };

const char* to_string(Keep keep);

struct TrainerOptions {
  OptimiserOptions optimiser;
  RateSchedule schedule = RateSchedule::cosine;
  std::int64_t warm_up_steps = 0;
  std::int64_t drop_after = 0;  ///< steps, of the schedule drop
  std::int64_t batch = 64;      ///< examples of a step
  std::int64_t epochs = 10;
  std::int64_t steps = 0;           ///< in place of epochs, unless 0
  std::int64_t evaluate_every = 0;  ///< steps; 0 = after each epoch
  bool test_each = false;           ///< whether each evaluation scores the test split, too
  Keep keep = Keep::last;           ///< whose weights are scored at the end
  bool shuffled = true;
  bool fresh = false;     ///< new examples in each epoch
  double stop_above = 0;  ///< validation accuracy above which training ends; 0 = never
  double embedding_dropout = 0;
  double dropout = 0;              ///< of the outputs of mixes and MLPs
  std::uint64_t data_seed = 0;     ///< of the order and of dropout
  double checkpoint_seconds = 30;  ///< between two checkpoints; 0 = after every step
  /// Called after each step with the number of steps done; an exception ends the training.
  std::function<void(std::int64_t)> after_step;
};

/// The settings of the optimiser, its schedule, the order of examples and checkpoints.
std::vector<Option> trainer_settings();

/// Reads those and `batch`. `run_seed` is that of the whole run: it changes order and dropout.
TrainerOptions trainer_options_from(const Options& settings, std::uint64_t run_seed);

}  // namespace attnbench::tasks::training
