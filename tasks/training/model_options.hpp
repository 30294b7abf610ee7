// The structure of a model, as settings choose it.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/option.hpp"
#include "core/problem.hpp"
#include "tasks/training/classifier_options.hpp"

namespace attnbench::tasks::training {

/// The MLP of a block. plain: GELU between two products with biases (Vaswani et al. 2017, as in
/// GPT-2). gated: the product of one projection and the SiLU of another, without biases (Shazeer
/// 2020). none: no second half of the block. identity: x + norm(x), as Zoology's code does for
/// "Identity".
enum class Mlp { plain, gated, none, identity };
/// The norms of a block. layer: LayerNorm with weight and bias. rms: RMSNorm with a weight (Zhang
/// and Sennrich 2019).
enum class Norm { layer, rms };
/// The blocks that hold the mechanism. mechanism: in every block. convolution_first: blocks
/// alternate between a gated short convolution and the mechanism (Zoology's BaseConv below the
/// mixer under comparison).
enum class Layout { mechanism, convolution_first };
/// Added to the embedding: learned, a table; sinusoidal, alternating sines and cosines, wavelengths
/// from 2 pi to 10000 * 2 pi (Vaswani et al. 2017). rotary: rotates queries and keys (Su et al.
/// 2021); the mechanism must have both.
enum class Positions { none, learned, sinusoidal, rotary };

/// The dtype of products. off: products in the dtype of the weights. bfloat16: LibTorch's autocast
/// with float32 weights: projections, mix, MLP and head in bfloat16; norms, residual stream, logits
/// and loss in float32.
enum class Autocast { off, bfloat16 };

/// What the model reads: an embedding of token ids, or numbers, one a token, through a linear map
/// with a bias.
enum class ModelInput { tokens, values };

const char* to_string(Mlp mlp);
const char* to_string(Norm norm);
const char* to_string(Layout layout);
const char* to_string(Positions positions);
const char* to_string(Autocast autocast);
/// Throw UsageError that lists the names.
Mlp mlp_from(const std::string& name);
Norm norm_from(const std::string& name);
Layout layout_from(const std::string& name);
Positions positions_from(const std::string& name);
Autocast autocast_from(const std::string& name);
ModelInput model_input_from(const std::string& name);

struct ModelOptions {
  std::int64_t layers = 2;
  std::int64_t vocabulary = 256;
  Mlp mlp = Mlp::plain;
  std::int64_t mlp_width = 0;  ///< hidden numbers of the MLP; 0 = four times the width
  Norm norm = Norm::layer;
  bool tied_head = true;  ///< logits from the embedding's own weights
  Layout layout = Layout::mechanism;
  Positions positions = Positions::none;
  std::int64_t taps = 3;  ///< of the short convolution
  /// Standard deviation of the initial weights of projections; of output projections it is divided
  /// by sqrt(2 * layers), as in GPT-2. 0 = 1 / sqrt(inputs) for all.
  double initial_deviation = 0;
  /// Tokens that share a position; each has an equal part of the width.
  std::int64_t tokens_per_position = 1;
  /// Whether an MLP reads every place of the sequence out of one position's features (Decoder of
  /// parts.hpp).
  bool decoder = false;
  Autocast autocast = Autocast::off;
  ModelInput input = ModelInput::tokens;
  bool projection_bias = false;       ///< on all projections of a mechanism's inputs and output
  bool final_norm = true;             ///< after the last block
  ClassifierOptions classifier = {};  ///< in place of the token head where it has classes
};

/// layers, stack, layout, short_convolution_taps, positions, mlp, mlp_width, norm, final_norm,
/// projection_bias, tied_head, autocast, initial_deviation, embedding_dropout, dropout, model_seed.
std::vector<Option> model_settings();

/// Reads layers, vocabulary, mlp, mlp_width, norm and tied_head, and the others above where the
/// task has them, those of a classifier too.
ModelOptions model_options_from(const Options& settings);

/// Throws UsageError for options that exclude each other.
void require_consistent(const ModelOptions& options, const Problem& problem);

/// The dtype of products, and so of a mix's inputs, where weights have the dtype `weights`.
Dtype mix_dtype(const ModelOptions& options, Dtype weights);

/// State bytes of one sequence while decoding, by part of the model: "mechanism" (absent where it
/// has no state) and "convolution", each summed over blocks.
using StateBytes = std::map<std::string, std::int64_t>;

/// The width of the MLP: `options.mlp_width`, or four times the width of tokens.
std::int64_t mlp_width(const ModelOptions& options, const Problem& problem);

/// Number of blocks that hold the mechanism.
std::int64_t mechanism_blocks(const ModelOptions& options);
bool is_mechanism_block(const ModelOptions& options, std::int64_t index);

/// The tokens of a mix for examples of `length` tokens: one more where the model adds one.
std::int64_t mix_length(const ModelOptions& options, std::int64_t length);

/// The numbers that the head returns for each label.
std::int64_t outputs(const ModelOptions& options);

/// Number of weights outside mechanisms and their projections. problem.length is that of the mix.
std::int64_t weights_around(const ModelOptions& options, const Problem& problem);

}  // namespace attnbench::tasks::training
