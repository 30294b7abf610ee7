#include "tasks/training/model_options.hpp"

#include "core/errors.hpp"
#include "tasks/word.hpp"

namespace attnbench::tasks::learning {
namespace {

std::int64_t mlp_weights(const ModelOptions& options, const Problem& problem) {
  const std::int64_t width = problem.width();
  const std::int64_t hidden = mlp_width(options, problem);
  if (options.mlp == Mlp::gated) return 3 * width * hidden;
  if (options.mlp == Mlp::plain) return 2 * width * hidden + hidden + width;
  return 0;
}

}  // namespace

const char* to_string(Mlp mlp) {
  switch (mlp) {
    case Mlp::plain:
      return "plain";
    case Mlp::gated:
      return "gated";
    case Mlp::none:
      return "none";
    case Mlp::identity:
      return "identity";
  }
  return "";
}

const char* to_string(Norm norm) { return norm == Norm::rms ? "rms" : "layer"; }

const char* to_string(Layout layout) {
  return layout == Layout::mechanism ? "mechanism" : "convolution_first";
}

const char* to_string(Positions positions) {
  switch (positions) {
    case Positions::none:
      return "none";
    case Positions::learned:
      return "learned";
    case Positions::sinusoidal:
      return "sinusoidal";
    case Positions::rotary:
      break;
  }
  return "rotary";
}

const char* to_string(Autocast autocast) { return autocast == Autocast::off ? "off" : "bfloat16"; }

Mlp mlp_from(const std::string& word) {
  return word_from("mlp", {Mlp::plain, Mlp::gated, Mlp::none, Mlp::identity}, word);
}

Norm norm_from(const std::string& word) {
  return word_from("norm", {Norm::layer, Norm::rms}, word);
}

Layout layout_from(const std::string& word) {
  return word_from("layout", {Layout::mechanism, Layout::convolution_first}, word);
}

Positions positions_from(const std::string& word) {
  return word_from("positions",
                   {Positions::none, Positions::learned, Positions::sinusoidal, Positions::rotary},
                   word);
}

Autocast autocast_from(const std::string& word) {
  return word_from("autocast", {Autocast::off, Autocast::bfloat16}, word);
}

void require_fitting(const ModelOptions& options, const Problem& problem) {
  if (mechanism_blocks(options) == 0) {
    throw UsageError("one layer of the layout convolution_first holds no mechanism: say 2 or more");
  }
  if (options.autocast != Autocast::off && problem.dtype != Dtype::float32) {
    throw UsageError("autocast narrows products of float32 weights, not of " +
                     std::string(to_string(problem.dtype)) +
                     ": say dtype float32, or autocast off");
  }
  if (options.tokens_per_position == 1) return;
  if (options.tied_head) {
    throw UsageError(
        "where tokens share a position the embedding is narrower than the head: say tied_head "
        "false");
  }
  if (problem.width() % options.tokens_per_position != 0) {
    throw UsageError("the width " + std::to_string(problem.width()) + " is not divided by the " +
                     std::to_string(options.tokens_per_position) + " tokens that share a position");
  }
}

Dtype mix_dtype(const ModelOptions& options, Dtype weights) {
  return options.autocast == Autocast::off ? weights : Dtype::bfloat16;
}

std::int64_t mlp_width(const ModelOptions& options, const Problem& problem) {
  return options.mlp_width == 0 ? 4 * problem.width() : options.mlp_width;
}

bool is_mechanism_block(const ModelOptions& options, std::int64_t index) {
  return options.layout == Layout::mechanism || index % 2 == 1;
}

std::int64_t mechanism_blocks(const ModelOptions& options) {
  return options.layout == Layout::mechanism ? options.layers : options.layers / 2;
}

std::int64_t weights_around(const ModelOptions& options, const Problem& problem) {
  const std::int64_t width = problem.width();
  const std::int64_t norm = options.norm == Norm::rms ? width : 2 * width;
  const std::int64_t norms = options.mlp == Mlp::none ? 1 : 2;
  const std::int64_t each = mlp_weights(options, problem) + norms * norm;
  const std::int64_t embedding = options.vocabulary * width / options.tokens_per_position;
  const std::int64_t head = options.tied_head ? 0 : options.vocabulary * width;
  const std::int64_t table = options.positions == Positions::learned ? problem.length * width : 0;
  const std::int64_t convolutions = options.layers - mechanism_blocks(options);
  const std::int64_t decoder = options.decoder ? 3 * norm + 2 * (width * width + width) : 0;
  return embedding + head + table + decoder + options.layers * each + norm +
         convolutions * (options.taps * width + width * width + 2 * width);
}

}  // namespace attnbench::tasks::learning
