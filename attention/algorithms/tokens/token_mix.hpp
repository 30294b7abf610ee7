// Modules for Feed::before: they mix a token with those before it, over the whole width of the
// model, or with those on both sides. What looks back only ignores padding: padding to the left of
// real tokens leaks into them, padding to the right is harmless.
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
  /// Mixes the tokens of x. With a state: continues from the tensors that `add_state` created, and
  /// updates them.
  virtual at::Tensor forward(const at::Tensor& x, State* state) = 0;
  virtual void draw_parameters(std::uint64_t seed) = 0;
  virtual void add_state(State& state, std::int64_t batch,
                         const at::TensorOptions& tensor) const = 0;
};

/// Two modules over the same tokens, of which the second one sees them in reverse order; the sum of
/// both. Each sequence is reversed within its true length, so that its padding stays behind it and
/// is seen by neither. The papers of Latte do not say how a recurrence looks ahead: this is our
/// choice. Without a state.
class BothDirections : public torch::nn::Module {
 public:
  BothDirections(std::shared_ptr<TokenMix> forward, std::shared_ptr<TokenMix> backward);
  /// key_mask [B, T] bool, true at real tokens, which padding follows; undefined = all are real.
  at::Tensor forward(const at::Tensor& x, const at::Tensor& key_mask);
  /// The directions get different numbers.
  void draw_parameters(std::uint64_t seed);

 private:
  std::shared_ptr<TokenMix> forward_;
  std::shared_ptr<TokenMix> backward_;
};

/// A mechanism whose `before` may look ahead: it has to know which tokens are real.
class LooksAhead {
 public:
  virtual ~LooksAhead() = default;
  virtual bool looks_ahead() const = 0;
  /// Replaces Mechanism::before where it looks ahead. The mask is as in BothDirections.
  virtual at::Tensor before_masked(const at::Tensor& x, const at::Tensor& key_mask) = 0;
};

/// A mechanism some of whose roles are fed by such a module, as its options token_mix_options say.
class MixesTokens : public Mechanism, public LooksAhead {
 public:
  /// `chunk`: tokens per chunk of a recurrence.
  MixesTokens(const std::string& name, const Options& chosen, const Problem& asked,
              std::int64_t chunk);

  at::Tensor before(const at::Tensor& x, State* state) override;
  bool looks_ahead() const override { return both_ != nullptr; }
  at::Tensor before_masked(const at::Tensor& x, const at::Tensor& key_mask) override;
  void draw_parameters(std::uint64_t seed) override;

 protected:
  /// The feed of the roles that it feeds: Feed::before, or projected where the option `before` is
  /// none.
  Feed fed() const { return ahead_ || both_ ? Feed::before : Feed::projected; }
  /// The roles, of which it feeds those of these names.
  std::vector<Role> feeding(std::vector<Role> roles, const std::vector<std::string>& names) const;
  /// Adds the tensors of what comes before.
  void add_mix_state(State& state, std::int64_t batch, const at::TensorOptions& tensor) const;

 private:
  at::Tensor finished(const at::Tensor& y) const;

  std::shared_ptr<TokenMix> ahead_;       ///< looks back
  std::shared_ptr<BothDirections> both_;  ///< looks back and ahead
};

/// The options before, directions, taps and before_norm; `fed` names the roles, for the help.
std::vector<Option> token_mix_options(const std::string& fed);
/// Refuses what contradicts the pattern, or itself.
Support token_mix_support(const std::string& mechanism, const Options& options,
                          const Problem& problem);

/// y_t = sum_{i < taps} w_i x_{t-i}, channel by channel: Latte v2, section 4.1, eq. 18, with
/// `taps` (the paper's K) taps where its sum writes K + 1. Parameter "weight" [taps, C]; state
/// "tail".
std::shared_ptr<TokenMix> short_convolution(const Problem& problem, std::int64_t taps);

/// The RG-LRU over x itself, its gates projected from x by one block per head (De et al. 2024,
/// appendix A). Parameters "recurrence_weight" and "input_weight" [H, D, D], "lambda",
/// "recurrence_bias" and "input_bias" [H, D]; state "hidden". In chunks of `chunk` tokens.
std::shared_ptr<TokenMix> recurrent_mix(const Problem& problem, std::int64_t chunk);

}  // namespace attnbench
