// The state of a training: what a checkpoint holds and what processes share.
#pragma once

#include "tasks/training/checkpoint.hpp"
#include "tasks/training/optimiser.hpp"
#include "tasks/training/process_group.hpp"

namespace attnbench::tasks::training {

/// How far a training has come. The curve has a point for each epoch: {epoch, step, learning_rate,
/// loss, train_accuracy, validation_loss, validation_accuracy}; loss and train_accuracy are means
/// over the epoch's own steps.
struct TrainingState {
  std::int64_t step = 0;
  std::string stopped;  ///< "epochs" or "accuracy"; empty before the end
  Json curve = Json::array();
  double epoch_loss = 0;             ///< sum over the steps of the current epoch
  std::int64_t epoch_questions = 0;  ///< likewise
  std::int64_t epoch_right = 0;      ///< likewise
  double step_seconds = 0;  ///< time of all steps so far, without evaluation and checkpoints
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingState, step, stopped, curve, epoch_loss, epoch_questions,
                                   epoch_right, step_seconds)

/// All weights by name, and the buffers of mechanisms (Performer's features, which it may redraw
/// during training).
NamedTensors weights_of(const torch::nn::Module& model);

/// Nothing where a weight is not finite: a bad step shows in the loss of the next one only, and a
/// checkpoint must be good.
std::optional<Checkpoint> checkpoint_of(const TrainingState& state, const torch::nn::Module& model,
                                        const Optimiser& optimiser);

/// Sets model and optimiser from a checkpoint and returns its state. Throws Error for what does not
/// fit, and leaves the weights unchanged then.
TrainingState restore(const Checkpoint& checkpoint, torch::nn::Module& model, Optimiser& optimiser);

/// Gives all processes of the group the state of the first one: step, weights and means.
void broadcast_state(ProcessGroup& group, TrainingState& state, torch::nn::Module& model,
                     Optimiser& optimiser);

/// Whether accuracy has stopped growing: training ended because it was high enough, or the best of
/// the last quarter of at least four epochs exceeds the best before by less than `least_gain`.
bool has_converged(const TrainingState& state, double least_gain = 0.01);

}  // namespace attnbench::tasks::training
