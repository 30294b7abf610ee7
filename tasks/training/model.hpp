// Model: from token numbers to logits, through pre-norm blocks around a mechanism.
//
// A block is x + attention(norm(x)), then x + mlp(norm(x)); in some layouts a short convolution
// stands in the place of attention. Where the mechanism has a latent stream (Luna), the model
// learns its start and carries it from block to block, p + attention's(norm(p)).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/layer.hpp"
#include "tasks/training/parts.hpp"

namespace attnbench::tasks::learning {

/// One block's stream of tokens [B, T, C] and, where there is one, of latents [B, L, C].
struct Stream {
  at::Tensor tokens;
  at::Tensor latents;
};

/// Zeroes a share of the embedding's numbers and scales up the others. None by default. What is
/// zeroed is drawn for `rows` sequences, of which those from `first_row` on are the model's; rows 0
/// = no others.
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
  /// What this block's mix is given for such a stream.
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
  std::shared_ptr<Normalise> before_mlp_;      ///< null without a second half
  std::shared_ptr<FeedForward> mlp_;           ///< null where it is none or the identity
};

/// Embedding, blocks, a last norm, a token head. Weights follow the seed alone, each block's
/// another one.
class Model : public torch::nn::Module {
 public:
  /// `make` is called once for each block that holds it; every mechanism it returns is for
  /// `problem`, whose length is the greatest there will be where positions are learned. Throws
  /// UnsupportedError for the pattern cross, which needs a second sequence, and UsageError for
  /// choices that do not go together.
  Model(const std::function<std::shared_ptr<Mechanism>()>& make,
        const Implementation& implementation, const ModelOptions& options, std::uint64_t seed);

  /// ids: [B, T] int64, below the vocabulary; [B, T, P] where P tokens share a position. key_mask:
  /// [B, T] bool, true where a token is real. Returns logits [B, T, vocabulary], in the weights'
  /// dtype whatever their products were computed in.
  at::Tensor forward(const at::Tensor& ids, const at::Tensor& key_mask = {});
  /// What the head is applied to, [B, T, C]: for tasks that need few of the logits.
  at::Tensor features(const at::Tensor& ids, const at::Tensor& key_mask = {},
                      const Dropout& dropout = {});
  at::Tensor head(const at::Tensor& features) const;
  /// What the head is applied to where the features of one position [N, C] stand for the sequence's
  /// `places` [N]; only of a model with a decoder.
  at::Tensor decoded(const at::Tensor& features, const at::Tensor& places) const;

  /// The blocks that hold the mechanism, and what the mix of the `index`-th of them is given when
  /// the model is run on `ids`.
  std::size_t mixes() const;
  Mechanism& mechanism(std::size_t index) { return mixing(index)->mechanism(); }
  Inputs mix_inputs(std::size_t index, const at::Tensor& ids);

  /// After `tokens` tokens, which are carried in the dtype of products.
  StateBytes state_bytes(std::int64_t tokens) const;

 private:
  Stream start(const at::Tensor& ids) const;
  std::shared_ptr<Block> mixing(std::size_t index) const;
  void give_initial_deviation(const ModelOptions& options);

  at::Tensor embedding_;                    ///< [vocabulary, C / P]
  at::Tensor head_;                         ///< [vocabulary, C]; the embedding where it is tied
  at::Tensor positions_;                    ///< [T, C]; undefined without positions
  at::Tensor latents_;                      ///< [L, C]; undefined without a latent stream
  std::optional<at::ScalarType> products_;  ///< their dtype under autocast
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<Normalise> last_;
  std::shared_ptr<Decoder> decoder_;  ///< null without one
};

}  // namespace attnbench::tasks::learning
