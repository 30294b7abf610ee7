// The state of a training: what a checkpoint holds and what processes share.
#pragma once

#include "core/result/training.hpp"
#include "tasks/training/checkpoint.hpp"
#include "tasks/training/optimiser.hpp"
#include "tasks/training/process_group.hpp"

namespace attnbench::tasks::training {

/// How far a training has come. The curve has a point for each evaluation, after an epoch by
/// default.
struct TrainingState {
  std::int64_t step = 0;
  std::string stopped;  ///< "epochs", "steps" or "accuracy"; empty before the end
  std::vector<result::CurvePoint> curve;
  double epoch_loss = 0;             ///< sum over the steps since the last evaluation
  std::int64_t epoch_questions = 0;  ///< likewise
  std::int64_t epoch_right = 0;      ///< likewise
  double step_seconds = 0;  ///< time of all steps so far, without evaluation and checkpoints
};
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TrainingState, step, stopped, curve, epoch_loss, epoch_questions,
                                   epoch_right, step_seconds)

/// All weights by name, and the buffers of mechanisms (Performer's features, which it may redraw
/// during training).
NamedTensors weights_of(const torch::nn::Module& model);

/// The weights of a checkpoint of checkpoint_of, or of the best validation.
NamedTensors saved_weights(const Checkpoint& checkpoint);

/// Sets all weights of the model, buffers included. Throws Error where one is missing or of another
/// shape, and leaves the model unchanged then.
void set_weights(const NamedTensors& saved, torch::nn::Module& model);

/// The checkpoint of a state; nothing where a weight is not finite: a bad step shows in the loss of
/// the next one only, and a checkpoint must be good.
std::optional<Checkpoint> checkpoint_of(const TrainingState& state, const torch::nn::Module& model,
                                        const Optimiser& optimiser);

/// Sets model and optimiser from a checkpoint and returns its state. Throws Error for what does not
/// fit, and leaves the weights unchanged then.
TrainingState restore(const Checkpoint& checkpoint, torch::nn::Module& model, Optimiser& optimiser);

/// Gives all processes of the group the state of the first one: step, weights and means.
void broadcast_state(ProcessGroup& group, TrainingState& state, torch::nn::Module& model,
                     Optimiser& optimiser);

/// Whether accuracy has stopped growing: training ended because it was high enough, or the best of
/// the last quarter of at least four evaluations exceeds the best before by less than `least_gain`.
bool has_converged(const TrainingState& state, double least_gain = result::least_gain);

/// Whether the validation loss has stopped falling: the least of the last quarter of at least four
/// evaluations is below the least before by less than that share.
bool loss_has_converged(const TrainingState& state, double least_share = 0.01);

}  // namespace attnbench::tasks::training
