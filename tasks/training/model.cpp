#include "tasks/training/model.hpp"

#include <cmath>

#include "attention/torch/autocast.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench::tasks::training {
namespace {

/// GPT-2's: small enough that a tied head starts near the uniform distribution.
constexpr double embedding_deviation = 0.02;

bool has_latent_stream(const Mechanism& mechanism) {
  for (const Role& role : mechanism.roles()) {
    if (role.source == Source::latent_stream) return true;
  }
  return false;
}

/// [B, H, L, w] as [B, L, H * w]; a stream of [B, L, C] is returned as it is.
at::Tensor merged_heads(const at::Tensor& latents) {
  return latents.dim() == 4 ? latents.transpose(1, 2).flatten(2) : latents;
}

}  // namespace

// ---- block

Block::Block(std::shared_ptr<Mechanism> mechanism, const Implementation& implementation,
             const ModelOptions& options, const Problem& problem, std::uint64_t seed)
    : torch::nn::Module("block"), mlp_kind_(options.mlp) {
  const auto norm = [&](const char* name) {
    return register_module(name, std::make_shared<Normalise>(options.norm, problem));
  };
  const bool stream = mechanism && has_latent_stream(*mechanism);
  if (mechanism) {
    layer_ = register_module(
        "attention",
        std::make_shared<Layer>(std::move(mechanism), implementation, Scope::layer, seed));
    if (options.positions == Positions::rotary) layer_->use_rotary_positions();
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

Stream Block::forward(const Stream& stream, const at::Tensor& key_mask) {
  Stream out = stream;
  {
    const Stream normed = normalised(stream);
    if (convolution_) {
      out.tokens = stream.tokens + convolution_->forward(normed.tokens);
    } else {
      const Mixed mixed = layer_->forward(normed.tokens, normed.tokens, key_mask, normed.latents);
      out.tokens = stream.tokens + mixed.output;
      if (mixed.latents.defined() && stream.latents.defined()) {
        out.latents = stream.latents + merged_heads(mixed.latents);
      }
    }
  }
  if (!before_mlp_) return out;
  const at::Tensor normed = before_mlp_->forward(out.tokens);
  out.tokens = out.tokens + (mlp_ ? mlp_->forward(normed) : normed);
  return out;
}

Inputs Block::mix_inputs(const Stream& stream) {
  const Stream normed = normalised(stream);
  return layer_->project(normed.tokens, normed.tokens, normed.latents);
}

// ---- model

Model::Model(const std::function<std::shared_ptr<Mechanism>()>& make,
             const Implementation& implementation, const ModelOptions& options, std::uint64_t seed)
    : torch::nn::Module("model") {
  const std::shared_ptr<Mechanism> first = make();
  const Problem problem = first->problem;
  if (problem.pattern == Pattern::cross) {
    throw UnsupportedError(
        "a model of one sequence has no cross attention: say causal or bidirectional");
  }
  require_consistent(options, problem);
  if (options.autocast != Autocast::off) {
    products_ = scalar_type(mix_dtype(options, problem.dtype));
  }
  const auto table = [&](const char* name, std::int64_t rows, std::int64_t columns) {
    return register_parameter(
        name, draw_normal(seed, name, {rows, columns}, embedding_deviation, problem),
        problem.gradient);
  };
  embedding_ =
      table("embedding", options.vocabulary, problem.width() / options.tokens_per_position);
  head_ = options.tied_head ? embedding_ : table("head", options.vocabulary, problem.width());
  if (options.positions == Positions::learned) {
    positions_ = table("positions", problem.length, problem.width());
  } else if (options.positions == Positions::sinusoidal) {
    positions_ = sinusoids(problem);
  }
  if (has_latent_stream(*first)) {
    latents_ = register_parameter(
        "latents",
        draw_normal(seed, "latents", {first->options.integer("latents_per_head"), problem.width()},
                    1, problem),
        problem.gradient);
  }
  bool used = false;
  for (std::int64_t i = 0; i < options.layers; ++i) {
    std::shared_ptr<Mechanism> mechanism;
    if (is_mechanism_block(options, i)) {
      mechanism = used ? make() : first;
      used = true;
    }
    const auto block = std::make_shared<Block>(std::move(mechanism), implementation, options,
                                               problem, seed + 1 + static_cast<std::uint64_t>(i));
    blocks_.push_back(register_module("block_" + std::to_string(i), block));
  }
  last_ = register_module("last_norm", std::make_shared<Normalise>(options.norm, problem));
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
                          holds(".convolution.gate") || holds("decoder.weight_");
    if (!projects || item.value().dim() != 2) continue;
    const bool output = holds("weight_out") || holds("mlp.out");
    item.value().mul_(options.initial_deviation *
                      std::sqrt(static_cast<double>(item.value().size(0))) *
                      (output ? of_outputs : 1.0));
  }
}

Stream Model::start(const at::Tensor& ids) const {
  Stream stream{at::embedding(embedding_, ids), {}};
  if (ids.dim() == 3) stream.tokens = stream.tokens.flatten(2);
  if (positions_.defined()) {
    stream.tokens = stream.tokens + positions_.narrow(0, 0, ids.size(1));
  }
  if (latents_.defined()) {
    stream.latents = latents_.unsqueeze(0).expand({ids.size(0), -1, -1});
  }
  return stream;
}

at::Tensor Model::features(const at::Tensor& ids, const at::Tensor& key_mask,
                           const Dropout& dropout) {
  const AutocastScope scope(embedding_.device(), products_);
  Stream stream = start(ids);
  if (dropout.share > 0) {
    const double kept = 1 - dropout.share;
    std::vector<std::int64_t> shape = stream.tokens.sizes().vec();
    if (dropout.rows > 0) shape[0] = dropout.rows;
    const at::Tensor mask = at::empty(shape, stream.tokens.options().requires_grad(false))
                                .bernoulli_(kept, dropout.generator)
                                .narrow(0, dropout.first_row, stream.tokens.size(0));
    stream.tokens = stream.tokens * mask.div_(kept);
  }
  for (const auto& block : blocks_) stream = block->forward(stream, key_mask);
  return last_->forward(stream.tokens);
}

at::Tensor Model::head(const at::Tensor& features) const {
  const AutocastScope scope(embedding_.device(), products_);
  return at::matmul(features, head_.transpose(0, 1)).to(head_.scalar_type());
}

at::Tensor Model::decoded(const at::Tensor& features, const at::Tensor& places) const {
  if (!decoder_) throw std::logic_error("the model has no decoder");
  const AutocastScope scope(embedding_.device(), products_);
  return decoder_->forward(features, places);
}

at::Tensor Model::forward(const at::Tensor& ids, const at::Tensor& key_mask) {
  return head(features(ids, key_mask));
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

Inputs Model::mix_inputs(std::size_t index, const at::Tensor& ids) {
  const std::shared_ptr<Block> wanted = mixing(index);
  const AutocastScope scope(embedding_.device(), products_);
  Stream stream = start(ids);
  for (const auto& block : blocks_) {
    if (block == wanted) break;
    stream = block->forward(stream, {});
  }
  return wanted->mix_inputs(stream);
}

StateBytes Model::state_bytes(std::int64_t tokens) const {
  StateBytes bytes;
  const at::TensorOptions tensor =
      embedding_.options().requires_grad(false).dtype(products_.value_or(embedding_.scalar_type()));
  for (const auto& block : blocks_) {
    if (!block->has_mechanism()) {
      bytes["convolution"] += block->convolution().state_bytes(tensor);
      continue;
    }
    try {
      bytes["mechanism"] += block->mechanism().empty_state(1, tokens, tensor).bytes();
    } catch (const UnsupportedError&) {
      // No state: nothing to count.
    }
  }
  return bytes;
}

}  // namespace attnbench::tasks::training
