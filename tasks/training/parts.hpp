// The modules of a model besides its mechanism.
#pragma once

#include <memory>

#include "attention/algorithms/tokens/token_mix.hpp"
#include "tasks/training/model_options.hpp"

namespace attnbench::tasks::training {

/// Normalises over the last dimension; in float32 for 16-bit tensors.
class Normalise : public torch::nn::Module {
 public:
  Normalise(Norm norm, const Problem& problem);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  Norm norm_;
  at::Tensor weight_;
  at::Tensor bias_;  ///< undefined for rms
};

/// The plain or the gated MLP.
class FeedForward : public torch::nn::Module {
 public:
  FeedForward(const ModelOptions& options, const Problem& problem, std::uint64_t seed);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  Mlp mlp_;
  at::Tensor in_;
  at::Tensor gate_;  ///< gated only
  at::Tensor out_;
  at::Tensor in_bias_;  ///< plain only
  at::Tensor out_bias_;
};

/// The sinusoids [count, C]: alternating sines and cosines of t / 10000^(2 i / C) (Vaswani et al.
/// 2017), for the tokens t from `first` on.
at::Tensor sinusoids(const Problem& problem, std::int64_t first, std::int64_t count);

/// Decodes each place of a sequence from one vector: MAD's decoder, as wide as the model so that it
/// adds no memory (Poli et al. 2024). Adds the place's sinusoid, then twice norm, product and GELU,
/// then a norm.
class Decoder : public torch::nn::Module {
 public:
  Decoder(const ModelOptions& options, const Problem& problem, std::uint64_t seed);
  /// vectors [N, C], places [N] below T; returns [N, C].
  at::Tensor forward(const at::Tensor& vectors, const at::Tensor& places) const;

 private:
  struct Step {
    std::shared_ptr<Normalise> norm;
    at::Tensor weight;
    at::Tensor bias;
  };

  at::Tensor sinusoids_;
  std::vector<Step> steps_;
  std::shared_ptr<Normalise> last_;
};

/// Zoology's BaseConv, x + convolution(x) * (x W + b), with a causal, short, depthwise convolution
/// (Arora et al. 2024).
class GatedConvolution : public torch::nn::Module {
 public:
  GatedConvolution(std::int64_t taps, const Problem& problem, std::uint64_t seed);
  /// Convolves. With a state: continues from the tokens before x, and advances it.
  at::Tensor forward(const at::Tensor& x, State* state = nullptr);
  /// The state before the first token.
  State empty_state(std::int64_t batch, const at::TensorOptions& tensor) const;

 private:
  std::shared_ptr<TokenMix> taps_;
  at::Tensor bias_;
  at::Tensor gate_;  ///< [C, C]
  at::Tensor gate_bias_;
};

}  // namespace attnbench::tasks::training
