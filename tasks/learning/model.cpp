#include "tasks/learning/model.hpp"

#include <cmath>

#include "attention/draw.hpp"

namespace attnbench::tasks::learning {
namespace {

/// GPT-2's: small enough that a tied head starts near the uniform distribution.
constexpr double embedding_deviation = 0.02;
constexpr double norm_epsilon = 1e-5;

template <class Word>
Word word_from(const char* setting, std::initializer_list<Word> words, const std::string& said) {
  std::string known;
  for (const Word word : words) {
    if (said == to_string(word)) return word;
    known += (known.empty() ? "" : ", ") + std::string(to_string(word));
  }
  throw UsageError(std::string(setting) + " must be one of " + known + ", not \"" + said + "\"");
}

at::Tensor constant(const std::vector<std::int64_t>& shape, double value, const Problem& problem) {
  return at::full(shape, value,
                  at::TensorOptions(scalar_type(problem.dtype)).device(problem.device));
}

/// [rows, columns] of variance 1/rows, as an input of unit variance keeps its own.
at::Tensor matrix(std::uint64_t seed, const std::string& name, std::int64_t rows,
                  std::int64_t columns, const Problem& problem) {
  return draw_normal(seed, name, {rows, columns}, 1 / std::sqrt(static_cast<double>(rows)),
                     problem);
}

bool has_latent_stream(const Mechanism& mechanism) {
  for (const Role& role : mechanism.roles()) {
    if (role.source == Source::latent_stream) return true;
  }
  return false;
}

/// [B, H, L, w] as [B, L, H * w]; a stream that is [B, L, C] already stays what it is.
at::Tensor merged_heads(const at::Tensor& latents) {
  return latents.dim() == 4 ? latents.transpose(1, 2).flatten(2) : latents;
}

}  // namespace

const char* to_string(Mlp mlp) { return mlp == Mlp::gated ? "gated" : "plain"; }
const char* to_string(Norm norm) { return norm == Norm::rms ? "rms" : "layer"; }
Mlp mlp_from(const std::string& word) { return word_from("mlp", {Mlp::plain, Mlp::gated}, word); }
Norm norm_from(const std::string& word) {
  return word_from("norm", {Norm::layer, Norm::rms}, word);
}

std::int64_t mlp_width(const ModelOptions& options, const Problem& problem) {
  return options.mlp_width == 0 ? 4 * problem.width() : options.mlp_width;
}

std::int64_t weights_around(const ModelOptions& options, const Problem& problem) {
  const std::int64_t width = problem.width();
  const std::int64_t hidden = mlp_width(options, problem);
  const std::int64_t mlp =
      options.mlp == Mlp::gated ? 3 * width * hidden : 2 * width * hidden + hidden + width;
  const std::int64_t norm = options.norm == Norm::rms ? width : 2 * width;
  const std::int64_t tables = options.tied_head ? 1 : 2;
  return tables * options.vocabulary * width + options.layers * (mlp + 2 * norm) + norm;
}

// ---- parts

Normalise::Normalise(Norm norm, const Problem& problem)
    : torch::nn::Module("norm"),
      norm_(norm),
      weight_(
          register_parameter("weight", constant({problem.width()}, 1, problem), problem.gradient)) {
  if (norm == Norm::rms) return;
  bias_ = register_parameter("bias", constant({problem.width()}, 0, problem), problem.gradient);
}

at::Tensor Normalise::forward(const at::Tensor& x) const {
  if (norm_ == Norm::layer) {
    return at::layer_norm(x, {x.size(-1)}, weight_, bias_, norm_epsilon);
  }
  const bool narrow = at::elementSize(x.scalar_type()) < 4;
  const at::Tensor wide = narrow ? x.to(at::kFloat) : x;
  const at::Tensor size = wide.pow(2).mean(-1, /*keepdim=*/true).add(norm_epsilon).rsqrt();
  return (wide * size).to(x.scalar_type()) * weight_;
}

FeedForward::FeedForward(const ModelOptions& options, const Problem& problem, std::uint64_t seed)
    : torch::nn::Module("mlp"), mlp_(options.mlp) {
  const std::int64_t width = problem.width();
  const std::int64_t hidden = mlp_width(options, problem);
  const auto weight = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    return register_parameter(name, matrix(seed, "mlp_" + name, rows, columns, problem),
                              problem.gradient);
  };
  const auto bias = [&](const std::string& name, std::int64_t size) {
    return register_parameter(name, constant({size}, 0, problem), problem.gradient);
  };
  in_ = weight("in", width, hidden);
  out_ = weight("out", hidden, width);
  if (mlp_ == Mlp::gated) {
    gate_ = weight("gate", width, hidden);
  } else {
    in_bias_ = bias("in_bias", hidden);
    out_bias_ = bias("out_bias", width);
  }
}

// Statement by statement, so that what is no longer needed is freed: this is the widest place.
at::Tensor FeedForward::forward(const at::Tensor& x) const {
  if (mlp_ == Mlp::gated) {
    at::Tensor hidden = at::silu(at::matmul(x, gate_));
    hidden = hidden * at::matmul(x, in_);
    return at::matmul(hidden, out_);
  }
  at::Tensor hidden = at::matmul(x, in_) + in_bias_;
  hidden = at::gelu(hidden);
  return at::matmul(hidden, out_) + out_bias_;
}

Block::Block(std::shared_ptr<Mechanism> mechanism, const Implementation& implementation,
             const ModelOptions& options, std::uint64_t seed)
    : torch::nn::Module("block") {
  const Problem problem = mechanism->problem;
  const bool stream = has_latent_stream(*mechanism);
  layer_ = register_module(
      "attention",
      std::make_shared<Layer>(std::move(mechanism), implementation, Scope::layer, seed));
  before_layer_ =
      register_module("before_attention", std::make_shared<Normalise>(options.norm, problem));
  if (stream) {
    before_latents_ =
        register_module("before_latents", std::make_shared<Normalise>(options.norm, problem));
  }
  before_mlp_ = register_module("before_mlp", std::make_shared<Normalise>(options.norm, problem));
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
    const Stream calm = normalised(stream);
    const Mixed mixed = layer_->forward(calm.tokens, calm.tokens, key_mask, calm.latents);
    out.tokens = stream.tokens + mixed.output;
    if (mixed.latents.defined() && stream.latents.defined()) {
      out.latents = stream.latents + merged_heads(mixed.latents);
    }
  }
  out.tokens = out.tokens + mlp_->forward(before_mlp_->forward(out.tokens));
  return out;
}

Inputs Block::mix_inputs(const Stream& stream) {
  const Stream calm = normalised(stream);
  return layer_->project(calm.tokens, calm.tokens, calm.latents);
}

// ---- the whole

Model::Model(const std::function<std::shared_ptr<Mechanism>()>& make,
             const Implementation& implementation, const ModelOptions& options, std::uint64_t seed)
    : torch::nn::Module("model") {
  const std::shared_ptr<Mechanism> first = make();
  const Problem problem = first->problem;
  if (problem.pattern == Pattern::cross) {
    throw UnsupportedError(
        "a model of one sequence has no cross attention: say causal or "
        "bidirectional");
  }
  const auto table = [&](const char* name) {
    return register_parameter(name,
                              draw_normal(seed, name, {options.vocabulary, problem.width()},
                                          embedding_deviation, problem),
                              problem.gradient);
  };
  embedding_ = table("embedding");
  head_ = options.tied_head ? embedding_ : table("head");
  if (has_latent_stream(*first)) {
    latents_ = register_parameter(
        "latents",
        draw_normal(seed, "latents", {first->options.integer("latents_per_head"), problem.width()},
                    1, problem),
        problem.gradient);
  }
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const auto block = std::make_shared<Block>(i == 0 ? first : make(), implementation, options,
                                               seed + 1 + static_cast<std::uint64_t>(i));
    blocks_.push_back(register_module("block_" + std::to_string(i), block));
  }
  last_ = register_module("last_norm", std::make_shared<Normalise>(options.norm, problem));
}

Stream Model::start(const at::Tensor& ids) const {
  Stream stream{at::embedding(embedding_, ids), {}};
  if (latents_.defined()) {
    stream.latents = latents_.unsqueeze(0).expand({ids.size(0), -1, -1});
  }
  return stream;
}

at::Tensor Model::features(const at::Tensor& ids, const at::Tensor& key_mask) {
  Stream stream = start(ids);
  for (const auto& block : blocks_) stream = block->forward(stream, key_mask);
  return last_->forward(stream.tokens);
}

at::Tensor Model::head(const at::Tensor& features) const {
  return at::matmul(features, head_.transpose(0, 1));
}

at::Tensor Model::forward(const at::Tensor& ids, const at::Tensor& key_mask) {
  return head(features(ids, key_mask));
}

Inputs Model::mix_inputs(std::size_t index, const at::Tensor& ids) {
  Stream stream = start(ids);
  for (std::size_t i = 0; i < index; ++i) stream = blocks_.at(i)->forward(stream, {});
  return blocks_.at(index)->mix_inputs(stream);
}

}  // namespace attnbench::tasks::learning
