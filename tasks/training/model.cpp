#include "tasks/training/model.hpp"

#include <algorithm>
#include <cmath>

#include "attention/torch/autocast.hpp"
#include "attention/torch/draw.hpp"
#include "tasks/forecast.hpp"

namespace attnbench::tasks::training {
namespace {

/// GPT-2's: small enough that a tied head starts near the uniform distribution.
constexpr double embedding_deviation = 0.02;

/// [B, H, L, w] as [B, L, H * w]; a stream of [B, L, C] is returned as it is.
at::Tensor merged_heads(const at::Tensor& latents) {
  return latents.dim() == 4 ? latents.transpose(1, 2).flatten(2) : latents;
}

}  // namespace

// ---- block

Block::Block(const Mixer& mixer, const ModelOptions& options, const Problem& problem,
             std::uint64_t seed)
    : torch::nn::Module("block"), mlp_kind_(options.mlp) {
  const auto norm = [&](const char* name) {
    return register_module(name, std::make_shared<Normalise>(options.norm, problem));
  };
  const bool stream = mixer.mechanism && stream_tokens(*mixer.mechanism) > 0;
  if (mixer.mechanism) {
    layer_ = register_module(
        "attention",
        std::make_shared<Layer>(mixer.mechanism, mixer.implementation, Scope::layer, seed));
    if (options.positions == Positions::rotary) layer_->use_rotary_positions();
    if (options.projection_bias) layer_->use_projection_biases();
  } else {
    convolution_ = register_module("convolution",
                                   std::make_shared<GatedConvolution>(options.taps, problem, seed));
  }
  before_layer_ = norm("before_attention");
  if (stream) before_latents_ = norm("before_latents");
  if (options.mlp == Mlp::none) return;
  before_mlp_ = norm("before_mlp");
  if (options.mlp == Mlp::identity) return;
  mlp_ = register_module("mlp", std::make_shared<FeedForward>(options, problem, seed));
}

Stream Block::normalised(const Stream& stream) const {
  Stream out{before_layer_->forward(stream.tokens), {}};
  if (before_latents_) out.latents = before_latents_->forward(stream.latents);
  return out;
}

Stream Block::forward(const Stream& stream, const at::Tensor& key_mask, const Dropout& dropout,
                      State* state) {
  const auto dropped = [&](const at::Tensor& x) { return dropout.applied(x, dropout.block_share); };
  Stream out = stream;
  {
    const Stream normed = normalised(stream);
    if (convolution_) {
      out.tokens = stream.tokens + dropped(convolution_->forward(normed.tokens, state));
    } else {
      const Mixed mixed =
          layer_->forward(normed.tokens, normed.tokens, key_mask, normed.latents, state);
      out.tokens = stream.tokens + dropped(mixed.output);
      if (mixed.latents.defined() && stream.latents.defined()) {
        out.latents = stream.latents + merged_heads(mixed.latents);
      }
    }
  }
  if (!before_mlp_) return out;
  const at::Tensor normed = before_mlp_->forward(out.tokens);
  out.tokens = out.tokens + dropped(mlp_ ? mlp_->forward(normed) : normed);
  return out;
}

State Block::empty_state(std::int64_t batch, std::int64_t capacity,
                         const at::TensorOptions& tensor) const {
  return convolution_ ? convolution_->empty_state(batch, tensor)
                      : layer_->mechanism().empty_state(batch, capacity, tensor);
}

Inputs Block::mix_inputs(const Stream& stream, const at::Tensor& key_mask) {
  const Stream normed = normalised(stream);
  return layer_->project(normed.tokens, normed.tokens, normed.latents, nullptr, key_mask);
}

// ---- model

Model::Model(const MakeMixer& make, const ModelOptions& options, std::uint64_t seed)
    : torch::nn::Module("model"), position_kind_(options.positions) {
  std::vector<Mixer> mixers{make(0)};
  const Problem problem = mixers.front().mechanism->problem;
  if (problem.pattern == Pattern::cross) {
    throw UnsupportedError(
        "a model of one sequence has no cross attention: say causal or bidirectional");
  }
  require_consistent(options, problem);
  const auto mixing_blocks = static_cast<std::size_t>(mechanism_blocks(options));
  while (mixers.size() < mixing_blocks) mixers.push_back(make(mixers.size()));
  if (options.autocast != Autocast::off) {
    products_ = scalar_type(mix_dtype(options, problem.dtype));
  }
  const auto table = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return register_parameter(
        name, draw_normal(seed, name, {rows, columns}, embedding_deviation, problem),
        problem.gradient);
  };
  if (options.input == ModelInput::tokens) {
    embedding_ =
        table("embedding", options.vocabulary, problem.width() / options.tokens_per_position);
  } else {
    embedding_ = register_parameter(
        "embedding", draw_normal(seed, "embedding", {1, problem.width()}, 1, problem),
        problem.gradient);
    embedding_bias_ = register_parameter(
        "embedding_bias", at::zeros({problem.width()}, embedding_.options().requires_grad(false)),
        problem.gradient);
  }
  if (options.classifier.classes > 0) {
    classifier_ = register_module("classifier",
                                  std::make_shared<Classifier>(options.classifier, problem, seed));
  } else {
    head_ = options.tied_head ? embedding_ : table("head", options.vocabulary, problem.width());
  }
  if (options.positions == Positions::learned) {
    positions_ = table("positions", problem.length, problem.width());
  } else if (options.positions == Positions::sinusoidal) {
    positions_ = sinusoids(problem, 0, problem.length);
  }
  std::int64_t latents = 0;
  for (const Mixer& one : mixers) latents = std::max(latents, stream_tokens(*one.mechanism));
  if (latents > 0) {
    latents_ = register_parameter(
        "latents", draw_normal(seed, "latents", {latents, problem.width()}, 1, problem),
        problem.gradient);
  }
  auto mixer = mixers.begin();
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const auto block =
        std::make_shared<Block>(is_mechanism_block(options, i) ? *mixer++ : Mixer{}, options,
                                problem, seed + 1 + static_cast<std::uint64_t>(i));
    blocks_.push_back(register_module("block_" + std::to_string(i), block));
  }
  if (options.final_norm) {
    last_ = register_module("last_norm", std::make_shared<Normalise>(options.norm, problem));
  }
  if (options.decoder) {
    decoder_ = register_module("decoder", std::make_shared<Decoder>(options, problem, seed));
  }
  set_initial_deviation(options);
}

/// Rescales projections, which were drawn with the deviation 1 / sqrt(rows).
void Model::set_initial_deviation(const ModelOptions& options) {
  if (options.initial_deviation <= 0) return;
  const at::NoGradGuard no_grad;
  const double of_outputs = 1 / std::sqrt(2.0 * static_cast<double>(options.layers));
  for (auto& item : named_parameters()) {
    const std::string& name = item.key();
    const auto holds = [&](const char* part) { return name.find(part) != std::string::npos; };
    const bool projects = holds(".attention.weight_") || holds(".mlp.") ||
                          holds(".convolution.gate") || holds("decoder.weight_") ||
                          holds("classifier.weight_");
    if (!projects || item.value().dim() != 2) continue;
    const bool output = holds("weight_out") || holds("mlp.out");
    item.value().mul_(options.initial_deviation *
                      std::sqrt(static_cast<double>(item.value().size(0))) *
                      (output ? of_outputs : 1.0));
  }
}

at::Tensor Model::embedded(const at::Tensor& input) const {
  if (embedding_bias_.defined()) {
    const at::Tensor values = input.to(embedding_.scalar_type()).unsqueeze(2);
    return values * embedding_ + embedding_bias_;
  }
  const at::Tensor tokens = at::embedding(embedding_, input);
  return input.dim() == 3 ? tokens.flatten(2) : tokens;
}

at::Tensor Model::positions(std::int64_t first, std::int64_t count) const {
  if (first + count <= positions_.size(0)) return positions_.narrow(0, first, count);
  if (position_kind_ == Positions::sinusoidal) {
    return sinusoids(mixing(0)->mechanism().problem, first, count);
  }
  throw UsageError("learned positions end at token " + std::to_string(positions_.size(0)) +
                   ", and token " + std::to_string(first + count) +
                   " was to be read; train with a greater length, or other positions");
}

Stream Model::start(const at::Tensor& input, std::int64_t first) const {
  Stream stream{embedded(input), {}};
  if (classifier_ && classifier_->cls().defined()) {
    const at::Tensor cls = classifier_->cls().expand({input.size(0), 1, -1});
    stream.tokens = at::cat({cls, stream.tokens}, 1);
  }
  if (positions_.defined()) {
    stream.tokens = stream.tokens + positions(first, stream.tokens.size(1));
  }
  if (latents_.defined()) {
    stream.latents = latents_.unsqueeze(0).expand({input.size(0), -1, -1});
  }
  return stream;
}

at::Tensor Model::mask_of(const at::Tensor& key_mask) const {
  const bool longer = classifier_ && classifier_->cls().defined();
  if (!key_mask.defined() || !longer) return key_mask;
  return at::constant_pad_nd(key_mask, {1, 0}, 1);
}

at::Tensor Model::features(const at::Tensor& input, const at::Tensor& key_mask,
                           const Dropout& dropout) {
  const AutocastScope scope(embedding_.device(), products_);
  Stream stream = start(input);
  stream.tokens = dropout.applied(stream.tokens, dropout.share);
  const at::Tensor mask = mask_of(key_mask);
  for (const auto& block : blocks_) stream = block->forward(stream, mask, dropout);
  return last_ ? last_->forward(stream.tokens) : stream.tokens;
}

at::Tensor Model::head(const at::Tensor& features) const {
  if (!head_.defined()) throw std::logic_error("the model classifies, and has no token head");
  const AutocastScope scope(embedding_.device(), products_);
  return at::matmul(features, head_.transpose(0, 1)).to(head_.scalar_type());
}

at::Tensor Model::decoded(const at::Tensor& features, const at::Tensor& places) const {
  if (!decoder_) throw std::logic_error("the model has no decoder");
  const AutocastScope scope(embedding_.device(), products_);
  return decoder_->forward(features, places);
}

void Model::expect_readable(const at::Tensor& real) const {
  if (classifier_) classifier_->expect_no_padding_after_cls(real);
}

at::Tensor Model::classified(const at::Tensor& features, const at::Tensor& key_mask) const {
  if (!classifier_) throw std::logic_error("the model has a token head, and no classifier");
  const AutocastScope scope(embedding_.device(), products_);
  return classifier_->forward(features, key_mask);
}

at::Tensor Model::forward(const at::Tensor& input, const at::Tensor& key_mask) {
  const at::Tensor found = features(input, key_mask);
  return classifier_ ? classified(found, key_mask) : head(found);
}

// ---- mixes

std::size_t Model::mixes() const {
  std::size_t count = 0;
  for (const auto& block : blocks_) count += block->has_mechanism();
  return count;
}

std::shared_ptr<Block> Model::mixing(std::size_t index) const {
  for (const auto& block : blocks_) {
    if (block->has_mechanism() && index-- == 0) return block;
  }
  throw std::logic_error("the model has no such mix");
}

Inputs Model::mix_inputs(std::size_t index, const at::Tensor& input, const at::Tensor& key_mask) {
  const std::shared_ptr<Block> wanted = mixing(index);
  const AutocastScope scope(embedding_.device(), products_);
  const at::Tensor mask = mask_of(key_mask);
  Stream stream = start(input);
  for (const auto& block : blocks_) {
    if (block == wanted) break;
    stream = block->forward(stream, mask);
  }
  return wanted->mix_inputs(stream, mask);
}

}  // namespace attnbench::tasks::training
