// What can come before a projection (Feed::before): mixes of a token with those before it, over the
// whole width of the model. Both look back only, whatever the pattern, and neither knows of
// padding: they run before there is a mask, so padded tokens to the left of real ones leak into
// them; to the right they do no harm.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"

namespace attnbench {

/// A module with parameters; x [B, T, C] to [B, T, C].
class TokenMix : public torch::nn::Module {
 public:
  using torch::nn::Module::Module;
  /// With a state: continues from the tensors that `add_state` put there, and advances them.
  virtual at::Tensor forward(const at::Tensor& x, State* state) = 0;
  virtual void draw_parameters(std::uint64_t seed) = 0;
  virtual void add_state(State& state, std::int64_t batch,
                         const at::TensorOptions& tensor) const = 0;
};

/// y_t = sum_{i < taps} w_i x_{t-i}, channel by channel: Latte v2, section 4.1, eq. 18, with
/// `taps` (the paper's K) taps where its sum writes K + 1. Parameter "weight" [taps, C]; state
/// "tail".
std::shared_ptr<TokenMix> short_convolution(const Problem& problem, std::int64_t taps);

/// The RG-LRU over x itself, its gates projected from x by one block per head (De et al. 2024,
/// appendix A). Parameters "recurrence_weight" and "input_weight" [H, D, D], "lambda",
/// "recurrence_bias" and "input_bias" [H, D]; state "hidden". `chunk` tokens are taken together.
std::shared_ptr<TokenMix> recurrent_mix(const Problem& problem, std::int64_t chunk);

}  // namespace attnbench
