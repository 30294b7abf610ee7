// Standing: all that a training has come to, as a checkpoint holds it and as processes share it.
#pragma once

#include "tasks/training/checkpoint.hpp"
#include "tasks/training/process_group.hpp"
#include "tasks/training/optimiser.hpp"

namespace attnbench::tasks::learning {

/// Where training stands. The curve has a point for each epoch: {epoch, step, learning_rate, loss,
/// train_accuracy, validation_loss, validation_accuracy}; loss and train_accuracy are means over
/// the epoch's own steps.
struct Progressed {
  std::int64_t step = 0;
  std::string stopped;  ///< "epochs" or "accuracy"; empty before the end
  Json curve = Json::array();
  double epoch_loss = 0;             ///< sum over the steps of the epoch under way
  std::int64_t epoch_questions = 0;  ///< likewise
  std::int64_t epoch_right = 0;
  double step_seconds = 0;  ///< time of all steps so far, evaluation and checkpoints apart
};

/// All weights by name, and the buffers that mechanisms keep (Performer's features, which it may
/// draw again while it learns).
NamedTensors weights_of(const torch::nn::Module& model);

/// Nothing where a weight is not finite: what came of the last step shows in the next loss only,
/// and a checkpoint must be a good one.
std::optional<Checkpoint> checkpoint_of(const Progressed& at, const torch::nn::Module& model,
                                        const Optimiser& optimiser);

/// Gives model and optimiser what `checkpoint_of` took, and returns where training stood. Throws
/// Error for what does not fit, and leaves the weights as they were.
Progressed take_up(const Checkpoint& checkpoint, torch::nn::Module& model, Optimiser& optimiser);

/// What the first process of the crew goes on from, if it goes on from anything, becomes
/// everybody's.
void share_first(Crew& crew, Progressed& at, torch::nn::Module& model, Optimiser& optimiser);

/// Whether accuracy had stopped growing: training ended because it was high enough, or its best of
/// the last quarter of at least four epochs exceeds the best before by less than `least_gain`.
bool has_converged(const Progressed& progressed, double least_gain = 0.01);

}  // namespace attnbench::tasks::learning
