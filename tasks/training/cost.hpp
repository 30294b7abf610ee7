// What training costs, foretold.
#pragma once

#include "attention/mechanism.hpp"
#include "tasks/training/model_options.hpp"

namespace attnbench::tasks::learning {

/// How much training there is.
struct Effort {
  std::int64_t steps = 0;
  double labels_per_step = 0;
};

/// Operations of all steps together; bytes of weights, gradients and the optimiser's means go to
/// and fro in each. `layer` is the cost of one attention layer's forward and backward pass at
/// `problem`, in the dtype of products.
Cost training_cost(const Cost& layer, const ModelOptions& options, const Problem& problem,
                   const Effort& effort);

/// The most in use at once; `layer_bytes` the peak of one attention layer's forward and backward
/// pass in the dtype of products, `layer_weights` its weights. `problem` is in that of the weights.
double training_peak_bytes(double layer_bytes, double layer_weights, const ModelOptions& options,
                           const Problem& problem, const Effort& effort);

}  // namespace attnbench::tasks::learning
