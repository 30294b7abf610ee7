// Model: from token numbers to logits, through pre-norm blocks around a mechanism.
//
// A block is x + attention(norm(x)), then x + mlp(norm(x)). Where the mechanism has a latent stream
// (Luna), the model learns its start and carries it from block to block, p + attention's(norm(p)).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "attention/layer.hpp"

namespace attnbench::tasks::learning {

/// plain: GELU between two products with biases (Vaswani et al. 2017, as in GPT-2). gated: the
/// product of one projection and the SiLU of another, without biases (Shazeer 2020).
enum class Mlp { plain, gated };
/// layer: LayerNorm with weight and bias. rms: RMSNorm with a weight (Zhang and Sennrich 2019).
enum class Norm { layer, rms };

const char* to_string(Mlp mlp);
const char* to_string(Norm norm);
/// Throw UsageError listing the valid words.
Mlp mlp_from(const std::string& word);
Norm norm_from(const std::string& word);

struct ModelOptions {
  std::int64_t layers = 2;
  std::int64_t vocabulary = 256;
  Mlp mlp = Mlp::plain;
  std::int64_t mlp_width = 0;  ///< hidden numbers of the MLP; 0 = four times the width
  Norm norm = Norm::layer;
  bool tied_head = true;  ///< logits from the embedding's own weights
};

/// `options.mlp_width`, or four times the width of tokens.
std::int64_t mlp_width(const ModelOptions& options, const Problem& problem);

/// Weights that the model has besides those of its mechanisms and their projections.
std::int64_t weights_around(const ModelOptions& options, const Problem& problem);

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

class FeedForward : public torch::nn::Module {
 public:
  FeedForward(const ModelOptions& options, const Problem& problem, std::uint64_t seed);
  at::Tensor forward(const at::Tensor& x) const;

 private:
  Mlp mlp_;
  at::Tensor in_;
  at::Tensor gate_;  ///< of gated alone
  at::Tensor out_;
  at::Tensor in_bias_;  ///< of plain alone
  at::Tensor out_bias_;
};

/// One block's stream of tokens [B, T, C] and, where there is one, of latents [B, L, C].
struct Stream {
  at::Tensor tokens;
  at::Tensor latents;
};

class Block : public torch::nn::Module {
 public:
  Block(std::shared_ptr<Mechanism> mechanism, const Implementation& implementation,
        const ModelOptions& options, std::uint64_t seed);
  Stream forward(const Stream& stream, const at::Tensor& key_mask);
  /// What this block's mix is given for such a stream.
  Inputs mix_inputs(const Stream& stream);
  Mechanism& mechanism() { return layer_->mechanism(); }

 private:
  Stream normalised(const Stream& stream) const;

  std::shared_ptr<Layer> layer_;
  std::shared_ptr<Normalise> before_layer_;
  std::shared_ptr<Normalise> before_latents_;  ///< null without a latent stream
  std::shared_ptr<Normalise> before_mlp_;
  std::shared_ptr<FeedForward> mlp_;
};

/// Embedding, blocks, a last norm, a token head. Without positions: what a mechanism knows of order
/// is its own. Weights follow the seed alone, each block's another one.
class Model : public torch::nn::Module {
 public:
  /// `make` is called once for each block; every mechanism it returns is for the same problem.
  /// Throws UnsupportedError for the pattern cross, which needs a second sequence.
  Model(const std::function<std::shared_ptr<Mechanism>()>& make,
        const Implementation& implementation, const ModelOptions& options, std::uint64_t seed);

  /// ids: [B, T] int64, below the vocabulary. key_mask: [B, T] bool, true where a token is real.
  /// Returns logits [B, T, vocabulary].
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& key_mask = {});
  /// What the head is applied to, [B, T, C]: for tasks that need few of the logits.
  at::Tensor features(const at::Tensor& ids, const at::Tensor& key_mask = {});
  at::Tensor head(const at::Tensor& features) const;

  /// What the mix of block `index` is given when the model is run on `ids`.
  Inputs mix_inputs(std::size_t index, const at::Tensor& ids);
  Mechanism& mechanism(std::size_t index) { return blocks_.at(index)->mechanism(); }
  std::size_t layers() const { return blocks_.size(); }

 private:
  Stream start(const at::Tensor& ids) const;

  at::Tensor embedding_;  ///< [vocabulary, C]
  at::Tensor head_;       ///< [vocabulary, C]; the embedding where it is tied
  at::Tensor latents_;    ///< [L, C]; undefined without a latent stream
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<Normalise> last_;
};

}  // namespace attnbench::tasks::learning
