// Optimiser: LibTorch's AdamW over the weights of a model, with clipping, and its state by name.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "attention/torch/torch.hpp"

namespace torch::optim {
class AdamW;
}

namespace attnbench::tasks::learning {

struct OptimiserOptions {
  double learning_rate = 1e-3;  ///< the greatest of the schedule
  double weight_decay = 0.1;
  /// Whether biases, norms and embeddings decay as well; else only weights of products do.
  bool decay_all = false;
  double beta_1 = 0.9;
  double beta_2 = 0.999;
  double epsilon = 1e-8;
  double clip = 0;  ///< greatest norm of all gradients together; 0 = no clipping
};

using NamedTensors = std::map<std::string, at::Tensor>;

class Optimiser {
 public:
  Optimiser(torch::nn::Module& model, const OptimiserOptions& options);
  ~Optimiser();

  /// Clips, moves the weights, and forgets the gradients.
  void step(double learning_rate);
  void forget_gradients();
  /// All gradients one after the other, zero where a weight has none, in the weights' type; and
  /// back.
  at::Tensor gradients() const;
  void set_gradients(const at::Tensor& flat);

  /// The running means of each weight that has been moved, as NAME.mean and NAME.square.
  NamedTensors state() const;
  /// Takes the state of a model of the same weights after `steps` steps. Throws Error for one that
  /// does not fit.
  void set_state(const NamedTensors& state, std::int64_t steps);

 private:
  void clip_gradients();

  const OptimiserOptions options_;
  std::vector<std::pair<std::string, at::Tensor>> weights_;
  std::unique_ptr<torch::optim::AdamW> adam_;
};

}  // namespace attnbench::tasks::learning
