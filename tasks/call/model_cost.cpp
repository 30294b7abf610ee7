#include "tasks/call/model_cost.hpp"

#include <algorithm>

namespace attnbench::tasks::call {
namespace {

struct Sizes {
  explicit Sizes(const Settings& settings)
      : layers(static_cast<double>(settings.model->layers)),
        tokens(static_cast<double>(settings.problem.batch * settings.problem.length)),
        width(static_cast<double>(settings.problem.width())),
        hidden(static_cast<double>(learning::mlp_width(*settings.model, settings.problem))),
        vocabulary(static_cast<double>(settings.model->vocabulary)),
        bytes(static_cast<double>(bytes_of(settings.problem.dtype))),
        products(settings.model->mlp == learning::Mlp::gated ? 3 : 2) {}

  double logits_bytes() const { return tokens * vocabulary * bytes; }

  double layers, tokens, width, hidden, vocabulary, bytes;
  double products;  ///< of the MLP; as many hidden tensors live there at once
};

double weights_bytes(double layer_weight_bytes, const Settings& settings) {
  const auto around =
      static_cast<double>(learning::weights_around(*settings.model, settings.problem));
  const Sizes n(settings);
  return n.layers * layer_weight_bytes + around * n.bytes;
}

}  // namespace

Cost model_cost(const Cost& layer, double weight_bytes, const Settings& settings) {
  const Sizes n(settings);
  const double forward = settings.pass == Pass::backward ? 0 : 1;
  const double backward = settings.has_backward() ? 1 : 0;
  const double once = 2 * n.tokens * n.width * (n.layers * n.products * n.hidden + n.vocabulary);
  const double around = once * (forward + 2 * backward);
  Cost cost = layer;
  cost.model_flops = n.layers * layer.model_flops + around;
  cost.executed_flops = n.layers * layer.executed_flops + around;
  cost.exponentials = n.layers * layer.exponentials;
  cost.state_bytes = n.layers * layer.state_bytes;
  cost.saved_bytes = n.layers * layer.saved_bytes;
  // Backward: the weights and the logits' gradient are read, the weights' gradients written.
  const double weights = weights_bytes(weight_bytes, settings);
  cost.minimal_bytes =
      (weights + n.logits_bytes()) * forward + (2 * weights + n.logits_bytes()) * backward;
  return cost;
}

double model_peak_bytes(double mix_bytes, double mix_saved_bytes, double weight_bytes,
                        const Settings& settings) {
  const Sizes n(settings);
  const double weights = weights_bytes(weight_bytes, settings);
  const double token_bytes = n.tokens * n.width * n.bytes;
  const double hidden_bytes = n.products * n.tokens * n.hidden * n.bytes;
  // Beside the mix: the stream, its norm, the heads put together again, the projected output.
  // Beside the MLP: the stream before and after the mix, a norm, what comes out, the sum.
  const double forward = std::max({mix_bytes + 4 * token_bytes, hidden_bytes + 5 * token_bytes,
                                   n.logits_bytes() + 2 * token_bytes});
  if (!settings.has_backward()) return weights + forward;
  const double saved = n.layers * (mix_bytes + mix_saved_bytes + hidden_bytes + 6 * token_bytes);
  return 2 * weights + saved + forward + 2 * n.logits_bytes();
}

}  // namespace attnbench::tasks::call
