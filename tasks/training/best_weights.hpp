// BestWeights: the weights of the evaluation with the best validation, in memory and,
// where a training has checkpoints, in a file beside them.
#pragma once

#include <string>
#include <vector>

#include "tasks/training/data.hpp"
#include "tasks/training/training_state.hpp"

namespace attnbench::tasks::training {

/// The step of the greatest validation accuracy of the curve, or of the least validation loss, the
/// first of equal ones; 0 before the first evaluation.
std::int64_t best_step(const TrainingState& state, Measure measure = Measure::accuracy);

class BestWeights {
 public:
  /// `checkpoints` may be null. Both must outlive this.
  BestWeights(torch::nn::Module& model, Checkpoints* checkpoints, Measure measure)
      : model_(model), checkpoints_(checkpoints), measure_(measure) {}

  /// Takes the weights that the model has after `step` steps.
  void take(std::int64_t step);
  /// Takes those of the file, if they are the best of the state's curve. A file that is ahead of
  /// the state is not a loss: the same steps find the same weights once more.
  void resume(const TrainingState& state);
  /// Copies the weights into the model. Where a group trained it, into that of every process.
  void give(ProcessGroup* group);

  /// The step of the weights; 0 without any.
  std::int64_t step() const { return step_; }
  /// Files that could not be read or written: one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  torch::nn::Module& model_;
  Checkpoints* checkpoints_;
  Measure measure_;
  std::int64_t step_ = 0;
  NamedTensors weights_;  ///< on the CPU
  std::vector<std::string> notes_;
};

}  // namespace attnbench::tasks::training
