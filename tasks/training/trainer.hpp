// Trainer: from first weights to trained ones, the same bits whether it was interrupted or not.
//
// A step takes one batch, computes logits at the labelled positions alone, and moves the weights by
// AdamW. After each epoch the validation split is scored. Everything random depends on the seeds
// and the step alone, so that a checkpoint holds weights, the optimiser's means and a few numbers.
#pragma once

#include <functional>
#include <string_view>

#include "core/errors.hpp"
#include "tasks/training/prefetcher.hpp"
#include "tasks/training/schedule.hpp"
#include "tasks/training/scores.hpp"
#include "tasks/training/training_state.hpp"

namespace attnbench::tasks::learning {

/// The loss is not a finite number; `what()` says at which step, and where the last good checkpoint
/// is.
class TrainingDiverged : public Error {
 public:
  using Error::Error;
};

struct TrainerOptions {
  OptimiserOptions optimiser;
  Schedule schedule = Schedule::cosine;
  std::int64_t warm_up_steps = 0;
  std::int64_t drop_after = 0;  ///< steps, of the schedule drop
  std::int64_t batch = 64;      ///< examples in a step
  std::int64_t epochs = 10;
  bool shuffled = true;
  bool fresh = false;     ///< other examples in each epoch
  double stop_above = 0;  ///< validation accuracy above which training ends; 0 = after all epochs
  double embedding_dropout = 0;
  std::uint64_t data_seed = 0;     ///< of the order and of dropout
  double checkpoint_seconds = 30;  ///< between two checkpoints; 0 = after every step
  /// Called after each step with the number of steps done; what it throws ends the training.
  std::function<void(std::int64_t)> after_step;
};

class Trainer {
 public:
  using Tell = std::function<void(double done, double total, std::string_view what)>;

  /// `checkpoints` may be null: then nothing is kept. `crew` may be null: then this process trains
  /// alone; else every process of it has such a trainer, and the first one's checkpoints count. All
  /// must outlive the trainer.
  Trainer(Model& model, const DataSet& data, TrainerOptions options, Checkpoints* checkpoints,
          Crew* crew = nullptr);

  /// Goes on from the newest good checkpoint, if there is one, to the end. Throws TrainingDiverged.
  void train(const Tell& tell = {});

  const Progressed& progressed() const { return at_; }
  const Course& course() const { return course_; }
  bool fresh() const { return options_.fresh; }
  std::int64_t resumed_from() const { return resumed_from_; }  ///< step; 0 = from the beginning
  /// Checkpoints that could not be taken or written: sentences.
  std::vector<std::string> notes() const;

 private:
  void resume();
  void save();
  void save_if_due();
  void take_step(Feeder& feeder);
  struct Learned {
    double loss = 0;  ///< the mean over the labels of the step
    std::int64_t questions = 0;
    std::int64_t right = 0;
  };
  Learned learn(const Batch& batch);
  Learned learn_together(const Batch& batch);
  at::Tensor logits_of(const Batch& batch);
  void end_epoch();
  Scores validate() const;
  [[noreturn]] void diverged() const;
  Order order() const;

  Model& model_;
  const DataSet& data_;
  const TrainerOptions options_;
  Checkpoints* checkpoints_;
  Crew* crew_;
  Course course_;
  Optimiser optimiser_;
  Progressed at_;
  std::int64_t resumed_from_ = 0;
  std::int64_t saved_step_ = -1;  ///< of the last good checkpoint
  double saved_at_ = 0;
  std::vector<std::string> notes_;
};

}  // namespace attnbench::tasks::learning
