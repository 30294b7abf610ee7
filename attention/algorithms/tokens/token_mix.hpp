// Modules for Feed::before: they mix a token with those before it, over the whole width of the
// model. Both look back only, in every pattern, and ignore padding, since they run before a mask
// exists: padding to the left of real tokens leaks into them, padding to the right is harmless.
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
  /// With a state: continues from the tensors that `add_state` created, and updates them.
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
/// "recurrence_bias" and "input_bias" [H, D]; state "hidden". In chunks of `chunk` tokens.
std::shared_ptr<TokenMix> recurrent_mix(const Problem& problem, std::int64_t chunk);

}  // namespace attnbench
