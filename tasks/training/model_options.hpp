// What a model is made of, as its user chooses it.
#pragma once

#include <map>
#include <string>

#include "core/problem.hpp"

namespace attnbench::tasks::learning {

/// plain: GELU between two products with biases (Vaswani et al. 2017, as in GPT-2). gated: the
/// product of one projection and the SiLU of another, without biases (Shazeer 2020). none: a block
/// ends with its mix. identity: what Zoology's code does where it says Identity, x + norm(x).
enum class Mlp { plain, gated, none, identity };
/// layer: LayerNorm with weight and bias. rms: RMSNorm with a weight (Zhang and Sennrich 2019).
enum class Norm { layer, rms };
/// mechanism: in every block. convolution_first: blocks take turns, a gated short convolution, then
/// the mechanism (Zoology's BaseConv under the mixer that is compared).
enum class Layout { mechanism, convolution_first };
/// Added to the embedding: learned, a table; sinusoidal, sines and cosines in turns, wavelengths
/// from 2 pi to 10000 * 2 pi (Vaswani et al. 2017). rotary: queries and keys are turned (Su et al.
/// 2021), where a mechanism has both.
enum class Positions { none, learned, sinusoidal, rotary };

/// off: products in the dtype of the weights. bfloat16: LibTorch's autocast around weights in
/// float32, so that projections, the mix, the MLP and the head are narrow, while norms, the stream
/// between blocks, logits and loss stay float32.
enum class Autocast { off, bfloat16 };

const char* to_string(Mlp mlp);
const char* to_string(Norm norm);
const char* to_string(Layout layout);
const char* to_string(Positions positions);
const char* to_string(Autocast autocast);
/// Throw UsageError listing the valid words.
Mlp mlp_from(const std::string& word);
Norm norm_from(const std::string& word);
Layout layout_from(const std::string& word);
Positions positions_from(const std::string& word);
Autocast autocast_from(const std::string& word);

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
  /// Standard deviation of projections' first weights; that of outputs is less by sqrt(2 * layers),
  /// as in GPT-2. 0 = 1 / sqrt(inputs) for all.
  double initial_deviation = 0;
  /// Tokens that share a position, each with an equal part of the width.
  std::int64_t tokens_per_position = 1;
  /// Whether one position's features stand for the whole sequence, each of whose places an MLP
  /// reads out of them (Decoder of parts.hpp).
  bool decoder = false;
  Autocast autocast = Autocast::off;
};

/// Throws UsageError for choices that do not go together.
void require_fitting(const ModelOptions& options, const Problem& problem);

/// Of products, and so of what a mix is given, where weights are of `weights`.
Dtype mix_dtype(const ModelOptions& options, Dtype weights);

/// Bytes that decoding one sequence carries from token to token, by part of the model: "mechanism"
/// (absent where it has no state) and "convolution", of all blocks together.
using StateBytes = std::map<std::string, std::int64_t>;

/// `options.mlp_width`, or four times the width of tokens.
std::int64_t mlp_width(const ModelOptions& options, const Problem& problem);

/// Blocks that hold the mechanism.
std::int64_t mechanism_blocks(const ModelOptions& options);
bool is_mechanism_block(const ModelOptions& options, std::int64_t index);

/// Weights that the model has besides those of its mechanisms and their projections.
std::int64_t weights_around(const ModelOptions& options, const Problem& problem);

}  // namespace attnbench::tasks::learning
