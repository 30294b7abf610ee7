// Model: from token ids, or numbers, to logits, through pre-norm blocks around a mechanism. The
// logits are those of tokens at every position, or those of classes of whole sequences.
//
// A block is x + attention(norm(x)), then x + mlp(norm(x)); in some layouts a short convolution
// replaces attention. Where the mechanism has a latent stream (Luna), the model learns its initial
// value and passes it from block to block, p + attention's(norm(p)).
//
// A causal model with a token head can also read a sequence bit by bit: a ModelState holds what it
// keeps of the tokens read so far. Reading a context, one token and a stream are the same function.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attention/layer.hpp"
#include "tasks/stack.hpp"
#include "tasks/training/classifier.hpp"
#include "tasks/training/dropout.hpp"
#include "tasks/training/parts.hpp"

namespace attnbench::tasks::training {

/// The residual stream of tokens [B, T, C] and, where there is one, of latents [B, L, C].
struct Stream {
  at::Tensor tokens;
  at::Tensor latents;
};

/// What a model keeps of the tokens that it has read: the states of its blocks.
struct ModelState {
  std::vector<State> blocks;  ///< a mechanism's, or a convolution's
  std::int64_t position = 0;  ///< tokens read so far
  std::int64_t bytes() const;
  /// A copy, so that one context serves many continuations.
  ModelState clone() const;
};

class Block : public torch::nn::Module {
 public:
  /// Makes a block around a mechanism, or around a gated convolution where it is null.
  Block(const Mixer& mixer, const ModelOptions& options, const Problem& problem,
        std::uint64_t seed);
  /// Runs the block. With a state: continues from the tokens before, and advances it.
  Stream forward(const Stream& stream, const at::Tensor& key_mask, const Dropout& dropout = {},
                 State* state = nullptr);
  /// The state before the first token; `capacity` as in Mechanism::empty_state, which throws where
  /// the mechanism has no state.
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const;
  /// The inputs of this block's mix for such a stream, with the mask.
  Inputs mix_inputs(const Stream& stream, const at::Tensor& key_mask);
  bool has_mechanism() const { return layer_ != nullptr; }
  Mechanism& mechanism() { return layer_->mechanism(); }

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

/// Embedding, blocks, a last norm, a token head or a classifier. The seed alone determines the
/// weights; each block has its own.
class Model : public torch::nn::Module {
 public:
  /// `make` is called once for each block with a mechanism, in their order. All are for one
  /// problem, whose length is the greatest possible where positions are learned. Throws
  /// UnsupportedError for the pattern cross, which needs a second sequence, and for streams of
  /// different numbers of latents, and UsageError for options that exclude each other.
  Model(const MakeMixer& make, const ModelOptions& options, std::uint64_t seed);

  /// input: token ids [B, T] int64, below the vocabulary; [B, T, P] where P tokens share a
  /// position; or numbers [B, T]. key_mask: [B, T] bool, true where a token is real; padding
  /// follows the real tokens. Returns logits [B, T, vocabulary] or, with a classifier, [B / towers,
  /// classes], in the weights' dtype, whatever the dtype of products.
  at::Tensor forward(const at::Tensor& input, const at::Tensor& key_mask = {});
  /// The input of the head, [B, T, C], T with the token that pooling cls adds: for tasks that need
  /// few of the logits.
  at::Tensor features(const at::Tensor& input, const at::Tensor& key_mask = {},
                      const Dropout& dropout = {});
  /// The token head's logits.
  at::Tensor head(const at::Tensor& features) const;
  /// Throws UsageError where the classifier's pooling cannot do with this mask [B, T], as
  /// Classifier::expect_no_padding_after_cls says. Waits for the device.
  void expect_readable(const at::Tensor& real) const;
  /// The classifier's logits, from features of whole sequences and the mask of their real tokens.
  at::Tensor classified(const at::Tensor& features, const at::Tensor& key_mask) const;
  /// The input of the head [N, C] for `places` [N], from features [N, C] that encode whole
  /// sequences. Only of a model with a decoder.
  at::Tensor decoded(const at::Tensor& features, const at::Tensor& places) const;

  // ---- with a state: model_state.cpp

  /// Whether the model has a state, and the reason if not: it is bidirectional, it classifies, or
  /// its mechanism has none.
  Support state_support() const;
  /// The state before the first token of `batch` sequences; `capacity` is the largest number of
  /// tokens that caches of keys have room for. Throws UnsupportedError with the reason of
  /// state_support.
  ModelState empty_state(std::int64_t batch, std::int64_t capacity) const;
  /// Reads `input`, token ids [B, T], after the tokens of the state, and advances it; records no
  /// gradients. Returns the logits [B, T, vocabulary] that forward would return for these tokens.
  /// Throws UsageError beyond the state's capacity, or beyond learned positions.
  at::Tensor step(const at::Tensor& input, ModelState& state);
  /// Reads `input` as `step` does; returns the logits [B, 1, vocabulary] of the last token alone.
  at::Tensor read(const at::Tensor& input, ModelState& state);
  /// The greatest number of tokens of a sequence: there are no learned positions for more. Nothing
  /// where there is no such limit.
  std::optional<std::int64_t> max_tokens() const;
  /// The bytes of the state after `tokens` tokens, in the dtype of products.
  StateBytes state_bytes(std::int64_t tokens) const;

  // ---- mixes

  /// The number of blocks with a mechanism, and the inputs of the mix in the `index`-th of them
  /// when the model runs on `input`.
  std::size_t mixes() const;
  Mechanism& mechanism(std::size_t index) { return mixing(index)->mechanism(); }
  Inputs mix_inputs(std::size_t index, const at::Tensor& input, const at::Tensor& key_mask = {});

 private:
  at::Tensor embedded(const at::Tensor& input) const;
  /// What the first block reads; `first` is the position of the first token.
  Stream start(const at::Tensor& input, std::int64_t first = 0) const;
  /// The position vectors [count, C] from position `first` on. Throws UsageError where none were
  /// learned.
  at::Tensor positions(std::int64_t first, std::int64_t count) const;
  at::TensorOptions state_options() const;
  at::Tensor features(const at::Tensor& input, ModelState& state);
  /// The mask of the tokens that the blocks see.
  at::Tensor mask_of(const at::Tensor& key_mask) const;
  std::shared_ptr<Block> mixing(std::size_t index) const;
  void set_initial_deviation(const ModelOptions& options);

  const Positions position_kind_;
  at::Tensor embedding_;                    ///< [vocabulary, C / P]; [1, C] for numbers
  at::Tensor embedding_bias_;               ///< [C], for numbers alone
  at::Tensor head_;                         ///< [vocabulary, C]; the embedding where it is tied
  at::Tensor positions_;                    ///< [T, C]; undefined unless learned or sinusoidal
  at::Tensor latents_;                      ///< [L, C]; undefined without a latent stream
  std::optional<at::ScalarType> products_;  ///< their dtype under autocast
  std::vector<std::shared_ptr<Block>> blocks_;
  std::shared_ptr<Normalise> last_;         ///< null without a last norm
  std::shared_ptr<Decoder> decoder_;        ///< null without one
  std::shared_ptr<Classifier> classifier_;  ///< null with a token head
};

}  // namespace attnbench::tasks::training
