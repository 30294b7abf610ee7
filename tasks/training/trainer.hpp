// Trainer: trains a model; an interrupted training gives the same bits as an unbroken one.
//
// A step takes one batch, computes logits at the labelled positions alone, and updates the weights
// by AdamW. After each epoch, or every so many steps, the validation split is scored. All random
// numbers depend on the seeds and the step alone, so that a checkpoint holds weights, the
// optimiser's means and a few numbers.
#pragma once

#include <functional>
#include <string_view>

#include "core/errors.hpp"
#include "tasks/training/best_weights.hpp"
#include "tasks/training/evaluation.hpp"
#include "tasks/training/prefetcher.hpp"
#include "tasks/training/trainer_options.hpp"
#include "tasks/training/training_state.hpp"

namespace attnbench::tasks::training {

/// The loss is not a finite number; `what()` names the step and the last good checkpoint.
class TrainingDiverged : public Error {
 public:
  using Error::Error;
};

class Trainer {
 public:
  using Progress = std::function<void(double done, double total, std::string_view what)>;

  /// `checkpoints` may be null: then none are written. `group` may be null: then this process
  /// trains alone; otherwise every process of the group has such a trainer, and only the first
  /// one's checkpoints are used. All must outlive the trainer.
  Trainer(Model& model, const DataSet& data, TrainerOptions options, Checkpoints* checkpoints,
          ProcessGroup* group = nullptr);

  /// Trains to the end, from the newest good checkpoint if there is one. Throws TrainingDiverged.
  void train(const Progress& progress = {});

  const TrainingState& state() const { return state_; }
  const LearningRateSchedule& schedule() const { return schedule_; }
  const TrainerOptions& options() const { return options_; }
  std::int64_t resumed_from() const { return resumed_from_; }  ///< step; 0 = from the start
  /// Checkpoints that could not be read or written: one sentence each.
  std::vector<std::string> notes() const;
  /// The step whose weights are scored: the last one, or that of the best validation.
  std::int64_t kept_step() const;
  /// Gives the model these weights. Call it once, after train().
  void keep();

 private:
  void resume();
  void save();
  void save_if_due();
  void take_step(Prefetcher& prefetcher);
  struct StepResult {
    double loss = 0;  ///< the mean over the labels of the step
    std::int64_t questions = 0;
    std::int64_t right = 0;
  };
  StepResult backward(const Batch& batch);
  StepResult backward_in_group(const Batch& batch);
  at::Tensor logits_of(const Batch& batch);
  bool evaluation_is_due() const;
  void evaluate_now();
  [[noreturn]] void diverged() const;
  BatchOrder order() const;

  Model& model_;
  const DataSet& data_;
  const TrainerOptions options_;
  Checkpoints* checkpoints_;
  ProcessGroup* group_;
  LearningRateSchedule schedule_;
  Optimiser optimiser_;
  TrainingState state_;
  BestWeights best_;
  std::int64_t resumed_from_ = 0;
  std::int64_t saved_step_ = -1;  ///< of the last good checkpoint
  double saved_at_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace attnbench::tasks::training
