// Trainer: trains a model; an interrupted training gives the same bits as an unbroken one.
//
// A step takes one batch, computes logits at the labelled positions alone, and updates the weights
// by AdamW. After each epoch the validation split is scored. All random numbers depend on the seeds
// and the step alone, so that a checkpoint holds weights, the optimiser's means and a few numbers.
#pragma once

#include <functional>
#include <string_view>

#include "core/errors.hpp"
#include "core/option.hpp"
#include "tasks/training/evaluation.hpp"
#include "tasks/training/prefetcher.hpp"
#include "tasks/training/training_state.hpp"

namespace attnbench::tasks::training {

/// The loss is not a finite number; `what()` names the step and the last good checkpoint.
class TrainingDiverged : public Error {
 public:
  using Error::Error;
};

struct TrainerOptions {
  OptimiserOptions optimiser;
  Schedule schedule = Schedule::cosine;
  std::int64_t warm_up_steps = 0;
  std::int64_t drop_after = 0;  ///< steps, of the schedule drop
  std::int64_t batch = 64;      ///< examples of a step
  std::int64_t epochs = 10;
  bool shuffled = true;
  bool fresh = false;     ///< new examples in each epoch
  double stop_above = 0;  ///< validation accuracy above which training ends; 0 = never
  double embedding_dropout = 0;
  std::uint64_t data_seed = 0;     ///< of the order and of dropout
  double checkpoint_seconds = 30;  ///< between two checkpoints; 0 = after every step
  /// Called after each step with the number of steps done; an exception ends the training.
  std::function<void(std::int64_t)> after_step;
};

/// The settings of the optimiser, its schedule, the order of examples and checkpoints.
std::vector<Option> trainer_settings();

/// Reads those and `batch`. `run_seed` is that of the whole run: it changes order and dropout.
TrainerOptions trainer_options_from(const Options& settings, std::uint64_t run_seed);

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
  bool fresh() const { return options_.fresh; }
  std::int64_t resumed_from() const { return resumed_from_; }  ///< step; 0 = from the start
  /// Checkpoints that could not be read or written: one sentence each.
  std::vector<std::string> notes() const;

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
  void end_epoch();
  Scores validate() const;
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
  std::int64_t resumed_from_ = 0;
  std::int64_t saved_step_ = -1;  ///< of the last good checkpoint
  double saved_at_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace attnbench::tasks::training
