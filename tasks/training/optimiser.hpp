// LibTorch's AdamW over the weights of a model, with clipping and its state by name, and the
// schedules of its learning rate.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/torch/torch.hpp"

namespace torch::optim {
class AdamW;
}

namespace attnbench::tasks::training {

/// The learning rate as a share of its greatest value. After a linear warm-up: constant; half a
/// cosine down to 0, by step or by epoch (one value for all steps of an epoch, as in Zoology's
/// code); a line down to 0; the inverse square root of the step; or constant with one drop to a
/// tenth. one_cycle: PyTorch's OneCycleLR with linear annealing: a line from 1/25 to 1 over the
/// warm-up, then one down to 1/250000 at the last step, while beta_1 goes from 0.95 to 0.85 and
/// back.
enum class RateSchedule {
  constant,
  cosine,
  cosine_by_epoch,
  linear,
  inverse_square_root,
  drop,
  one_cycle
};

const char* to_string(RateSchedule schedule);
std::vector<std::string> schedule_names();
/// Throws UsageError that lists the names.
RateSchedule schedule_from(const std::string& name);

struct LearningRateSchedule {
  RateSchedule schedule = RateSchedule::cosine;
  std::int64_t warm_up_steps = 0;
  std::int64_t steps_per_epoch = 1;
  std::int64_t epochs = 1;
  std::int64_t drop_after = 0;  ///< steps
  std::int64_t steps_said = 0;  ///< in place of epochs, unless 0

  std::int64_t steps() const { return steps_said > 0 ? steps_said : steps_per_epoch * epochs; }
  /// The share at this step, counted from 0: above 0, up to 1.
  double factor(std::int64_t step) const;
  /// AdamW's beta_1 at this step: `own`, unless the schedule cycles it.
  double beta_1(std::int64_t step, double own) const;

 private:
  /// The value at this step, on a line from `start` to `top` over the warm-up, then on one to `end`
  /// at the last step.
  double cycle(std::int64_t step, double start, double top, double end) const;
};

struct OptimiserOptions {
  double learning_rate = 1e-3;  ///< the schedule's greatest value
  double weight_decay = 0.1;
  /// Whether biases, norms and embeddings decay as well as the weights of products.
  bool decay_all = false;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-8;
  double clip = 0;        ///< greatest norm over all gradients; 0 = no clipping
  double clip_value = 0;  ///< greatest size of a gradient's numbers, before `clip`; 0 = no clipping
};

using NamedTensors = std::map<std::string, at::Tensor>;

class Optimiser {
 public:
  Optimiser(torch::nn::Module& model, const OptimiserOptions& options);
  ~Optimiser();

  /// Clips the gradients, updates the weights and drops the gradients.
  void step(double learning_rate, double beta_1);
  void step(double learning_rate) { step(learning_rate, options_.beta_1); }
  void drop_gradients();
  /// All gradients in one flat tensor of the weights' dtype, zero where a weight has none.
  at::Tensor gradients() const;
  /// The inverse of gradients().
  void set_gradients(const at::Tensor& flat);

  /// The running means of each weight that has been updated, as NAME.mean and NAME.square.
  NamedTensors state() const;
  /// Sets the state after `steps` steps of a model with the same weights. Throws Error where a
  /// shape differs.
  void set_state(const NamedTensors& state, std::int64_t steps);

 private:
  void clip_gradients();

  const OptimiserOptions options_;
  std::vector<std::pair<std::string, at::Tensor>> weights_;
  std::unique_ptr<torch::optim::AdamW> adam_;
};

}  // namespace attnbench::tasks::training
