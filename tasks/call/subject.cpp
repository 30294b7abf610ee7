#include "tasks/call/subject.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "tasks/call/memory.hpp"
#include "tasks/check.hpp"
#include "tasks/forecast.hpp"

namespace attnbench::tasks::call {

Subject::Subject(const Registry& registry, Cell cell, Forecast forecast, Settings settings)
    : registry_(registry),
      cell_(std::move(cell)),
      forecast_(std::move(forecast)),
      settings_(std::move(settings)),
      implementation_(chosen(registry, cell_, forecast_)) {}

void Subject::prepare(std::uint64_t seed) {
  at::manual_seed(seed);
  mechanism_ = make_mechanism(registry_, cell_, forecast_);
  if (settings_.scope == Scope::mix) {
    inputs_ = random_inputs(*mechanism_, seed, settings_.input_scale, settings_.has_backward());
  } else {
    prepare_layer(seed);
  }
  leaves_ = leaves();
  if (!settings_.has_backward()) return;
  const Problem& problem = settings_.problem;
  const std::vector<std::int64_t> shape =
      settings_.scope == Scope::layer
          ? std::vector<std::int64_t>{problem.batch, problem.length, problem.width()}
          : std::vector<std::int64_t>{problem.batch, problem.heads, problem.length,
                                      problem.value_dim};
  upstream_ = seeded_normal(shape, seed + 1, 1, scalar_type(problem.dtype));
}

void Subject::prepare_layer(std::uint64_t seed) {
  const Problem& problem = settings_.problem;
  const auto tokens = [&](std::int64_t length, std::uint64_t own_seed) {
    return seeded_normal({problem.batch, length, problem.width()}, own_seed, settings_.input_scale,
                         scalar_type(problem.dtype))
        .requires_grad_(settings_.has_backward());
  };
  layer_ = std::make_shared<Layer>(mechanism_, implementation_, settings_.scope, seed);
  tokens_ = tokens(problem.length, seed + 2);
  memory_tokens_ =
      problem.pattern == Pattern::cross ? tokens(problem.key_length, seed + 3) : tokens_;
  for (const Role& role : mechanism_->roles()) {
    if (role.source != Source::latent_stream) continue;
    latents_ = tokens(mechanism_->options.integer("latents_per_head"), seed + 4);
  }
}

Body Subject::body() {
  if (settings_.pass == Pass::forward) {
    return {[this] {
              const at::NoGradGuard no_grad;
              forward();
            },
            {}};
  }
  if (settings_.pass == Pass::forward_backward) {
    return {[this] {
              const at::AutoGradMode with_grad(true);
              forward().backward(upstream_);
            },
            [this] { clear_gradients(); }};
  }
  return {[this] { output_.backward(upstream_); },
          [this] {
            const at::AutoGradMode with_grad(true);
            clear_gradients();
            output_ = forward();
          }};
}

Json Subject::check(std::uint64_t seed) {
  Inputs inputs;
  {
    const at::NoGradGuard no_grad;
    inputs = layer_ ? layer_->project(tokens_, memory_tokens_, latents_) : inputs_;
  }
  return check_mix({registry_.entry(cell_.mechanism), implementation_,
                    registry_.reference(cell_.mechanism), *mechanism_, inputs, seed},
                   settings_.has_backward());
}

Json Subject::metered(MemoryMeter& meter) {
  std::int64_t input_bytes = 0;
  for (const at::Tensor& leaf : leaves_) input_bytes += static_cast<std::int64_t>(leaf.nbytes());
  return call::metered({settings_.pass, [this] { return forward(); }, upstream_,
                        [this] { clear_gradients(); }, input_bytes},
                       meter);
}

at::Tensor Subject::forward() {
  if (layer_) return layer_->forward(tokens_, memory_tokens_, {}, latents_).output;
  return implementation_.mix(*mechanism_, inputs_, nullptr).output;
}

/// Every tensor that the pass reads and that gets a gradient where there is a backward pass.
std::vector<at::Tensor> Subject::leaves() const {
  std::vector<at::Tensor> tensors = layer_ ? layer_->parameters() : mechanism_->parameters();
  for (const auto& [role, tensor] : inputs_.tensors) tensors.push_back(tensor);
  if (tokens_.defined()) tensors.push_back(tokens_);
  if (memory_tokens_.defined() && !memory_tokens_.is_same(tokens_)) {
    tensors.push_back(memory_tokens_);
  }
  if (latents_.defined()) tensors.push_back(latents_);
  return tensors;
}

void Subject::clear_gradients() {
  for (at::Tensor& leaf : leaves_) leaf.mutable_grad().reset();
}

}  // namespace attnbench::tasks::call
