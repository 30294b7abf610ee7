#include "tasks/training/cost.hpp"

namespace attnbench::tasks::learning {
namespace {

struct Sizes {
  Sizes(const ModelOptions& options, const Problem& problem)
      : tokens(static_cast<double>(problem.batch * problem.length)),
        width(static_cast<double>(problem.width())),
        hidden(static_cast<double>(mlp_width(options, problem))),
        layers(static_cast<double>(options.layers)),
        mechanisms(static_cast<double>(mechanism_blocks(options))),
        products(options.mlp == Mlp::gated   ? 3
                 : options.mlp == Mlp::plain ? 2
                                             : 0),
        bytes(static_cast<double>(bytes_of(problem.dtype))),
        product_bytes(static_cast<double>(bytes_of(mix_dtype(options, problem.dtype)))) {}

  double tokens, width, hidden, layers, mechanisms;
  double products;  ///< of the MLP; as many hidden tensors are kept for the backward pass
  double bytes;
  double product_bytes;
};

}  // namespace

Cost training_cost(const Cost& layer, const ModelOptions& options, const Problem& problem,
                   const Effort& effort) {
  const Sizes n(options, problem);
  const auto vocabulary = static_cast<double>(options.vocabulary);
  const auto steps = static_cast<double>(effort.steps);
  // A product's backward is two products of its size.
  const double around = 6 * (n.tokens * n.width * n.layers * n.products * n.hidden +
                             n.tokens * n.width * n.width * (n.layers - n.mechanisms) +
                             effort.labels_per_step * n.width * vocabulary);
  const double weights = static_cast<double>(weights_around(options, problem)) * n.bytes;
  Cost cost = layer;
  cost.model_flops = steps * (n.mechanisms * layer.model_flops + around);
  cost.executed_flops = steps * (n.mechanisms * layer.executed_flops + around);
  cost.exponentials = steps * n.mechanisms * layer.exponentials;
  // Weight, gradient and two means are read, all but the gradient written.
  cost.minimal_bytes = steps * (n.mechanisms * layer.minimal_bytes + 7 * weights);
  cost.state_bytes = n.mechanisms * layer.state_bytes;
  return cost;
}

double training_peak_bytes(double layer_bytes, double layer_weights, const ModelOptions& options,
                           const Problem& problem, const Effort& effort) {
  const Sizes n(options, problem);
  const double weights =
      static_cast<double>(weights_around(options, problem)) + n.mechanisms * layer_weights;
  const double stream = n.tokens * n.width * n.bytes;
  double block = 8 * stream + 2 * n.products * n.tokens * n.hidden * n.product_bytes;
  const double logits = effort.labels_per_step * static_cast<double>(options.vocabulary);
  double sum = 4 * weights * n.bytes + 4 * logits * n.bytes;
  if (n.product_bytes < n.bytes) {
    // Narrow copies of weights, of logits, and of what goes into a block's two halves.
    sum += (weights + logits) * n.product_bytes;
    block += 2 * stream / n.bytes * n.product_bytes;
  }
  return sum + n.mechanisms * layer_bytes + n.layers * block;
}

}  // namespace attnbench::tasks::learning
