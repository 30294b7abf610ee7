// Model: from token ids to logits, through pre-norm blocks around a mechanism.
//
// A block is x + attention(norm(x)), then x + mlp(norm(x)); in some layouts a short convolution
// replaces attention. Where the mechanism has a latent stream (Luna), the model learns its initial
// value and passes it from block to block, p + attention's(norm(p)).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/layer.hpp"
#include "tasks/training/parts.hpp"

namespace attnbench::tasks::training {

/// The residual stream of tokens [B, T, C] and, where there is one, of latents [B, L, C].
struct Stream {
  at::Tensor tokens;
  at::Tensor latents;
};

/// Sets a share of the embedding's numbers to zero and scales the others up. None by default. The
/// mask is drawn for `rows` sequences, of which the model's begin at `first_row`; rows 0 = only the
/// model's.
struct Dropout {
  double share = 0;
  at::Generator generator;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
};

class Block : public torch::nn::Module {
 public:
  /// Around `mechanism`, or around a gated convolution where it is null.
  Block(std::shared_ptr<Mechanism> mechanism, const Implementation& implementation,
        const ModelOptions& options, const Problem& problem, std::uint64_t seed);
  Stream forward(const Stream& stream, const at::Tensor& key_mask);
  /// The inputs of this block's mix for such a stream.
  Inputs mix_inputs(const Stream& stream);
  bool has_mechanism() const { return layer_ != nullptr; }
  Mechanism& mechanism() { return layer_->mechanism(); }
  const GatedConvolution& convolution() const { return *convolution_; }

 private:
  Stream normalised(const Stream& stream) const;

  Mlp mlp_kind_;
  std::shared_ptr<Layer> layer_;
  std::shared_ptr<GatedConvolution> convolution_;
  std::shared_ptr<Normalise> before_layer_;
  std::shared_ptr<Normalise> before_latents_;  ///< null without a latent stream
  std::shared_ptr<Normalise> before_mlp_;      ///< null without a second half of the block
  std::shared_ptr<FeedForward> mlp_;           ///< null for none and identity
};

/// Embedding, blocks, a last norm, a token head. The seed alone determines the weights; each block
/// has its own.
class Model : public torch::nn::Module {
 public:
  /// `make` is called once for each block with a mechanism. All are for one problem, whose length
  /// is the greatest possible where positions are learned. Throws UnsupportedError for the pattern
  /// cross, which needs a second sequence, and UsageError for options that exclude each other.
  Model(const std::function<std::shared_ptr<Mechanism>()>& make,
        const Implementation& implementation, const ModelOptions& options, std::uint64_t seed);

  /// ids: [B, T] int64, below the vocabulary; [B, T, P] where P tokens share a position. key_mask:
  /// [B, T] bool, true where a token is real. Returns logits [B, T, vocabulary], in the weights'
  /// dtype, whatever the dtype of products.
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& key_mask = {});
  /// The input of the head, [B, T, C]: for tasks that need few of the logits.
  at::Tensor features(const at::Tensor& ids, const at::Tensor& key_mask = {},
                      const Dropout& dropout = {});
  at::Tensor head(const at::Tensor& features) const;
  /// The input of the head [N, C] for `places` [N], from features [N, C] that encode whole
  /// sequences. Only of a model with a decoder.
  at::Tensor decoded(const at::Tensor& features, const at::Tensor& places) const;

  /// The number of blocks with a mechanism, and the inputs of the mix in the `index`-th of them
  /// when the model runs on `ids`.
  std::size_t mixes() const;
  Mechanism& mechanism(std::size_t index) { return mixing(index)->mechanism(); }
  Inputs mix_inputs(std::size_t index, const at::Tensor& ids);

  /// After `tokens` tokens, in the dtype of products.
  StateBytes state_bytes(std::int64_t tokens) const;

 private:
  Stream start(const at::Tensor& ids) const;
  std::shared_ptr<Block> mixing(std::size_t index) const;
  void set_initial_deviation(const ModelOptions& options);

  at::Tensor embedding_;                    ///< [vocabulary, C / P]
  at::Tensor head_;                         ///< [vocabulary, C]; the embedding where it is tied
  at::Tensor positions_;                    ///< [T, C]; undefined without positions
  at::Tensor latents_;                      ///< [L, C]; undefined without a latent stream
  std::optional<at::ScalarType> products_;  ///< their dtype under autocast
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<Normalise> last_;
  std::shared_ptr<Decoder> decoder_;  ///< null without one
};

}  // namespace attnbench::tasks::training
