#include "tasks/call/benchmark_target.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include "tasks/continuation.hpp"
#include "tasks/forecast.hpp"
#include "tasks/ragged.hpp"
#include "tasks/reference_rows.hpp"

namespace attnbench::tasks::call {
namespace {

/// The mask of a ragged batch; undefined where nothing is padded.
at::Tensor mask_of(const CallSettings& settings) {
  return real_tokens(settings.lengths, settings.problem.length, Padding::after,
                     settings.problem.device);
}

class MixTarget final : public BenchmarkTarget {
 public:
  MixTarget(std::shared_ptr<Mechanism> mechanism, const Implementation& implementation,
            const CallSettings& settings, std::uint64_t seed)
      : mechanism_(std::move(mechanism)),
        implementation_(implementation),
        inputs_(random_inputs(*mechanism_, seed, settings.input_scale, settings.has_backward())) {
    inputs_.key_mask = mask_of(settings);
  }

  at::Tensor forward() override {
    return implementation_.mix(*mechanism_, inputs_, nullptr).output;
  }
  std::vector<at::Tensor> leaves() const override {
    std::vector<at::Tensor> tensors = mechanism_->parameters();
    for (const auto& [role, tensor] : inputs_.tensors) tensors.push_back(tensor);
    return tensors;
  }
  std::vector<std::int64_t> output_shape() const override {
    const Problem& problem = mechanism_->problem;
    return {problem.batch, problem.heads, problem.length, problem.value_dim};
  }
  std::vector<CallInput> inputs() const override {
    std::vector<CallInput> all;
    for (const auto& [role, tensor] : inputs_.tensors) all.push_back({role, tensor, 2});
    return all;
  }
  void exchange(std::vector<CallInput>& others) override {
    auto other = others.begin();
    for (auto& [role, tensor] : inputs_.tensors) std::swap(tensor, (other++)->tensor);
  }
  bool is_mix() const override { return true; }
  InnerMix mix(std::size_t) override { return {*mechanism_, inputs_}; }

 private:
  std::shared_ptr<Mechanism> mechanism_;
  Implementation implementation_;
  Inputs inputs_;
};

/// The tokens after a past, mixed from the state that the past left.
class ContinuedTarget final : public BenchmarkTarget {
 public:
  ContinuedTarget(std::shared_ptr<Mechanism> mechanism, const Implementation& implementation,
                  const CallSettings& settings, std::uint64_t seed)
      : mechanism_(std::move(mechanism)),
        implementation_(implementation),
        past_(settings.past),
        inputs_(random_inputs(*mechanism_, seed, settings.input_scale, /*requires_grad=*/false)),
        new_(token_slice(*mechanism_, inputs_, past_, settings.problem.length)),
        state_(state_after(implementation_, *mechanism_, inputs_, past_, settings.problem.length)) {
  }

  at::Tensor forward() override {
    return implementation_.mix(*mechanism_, new_, &state_.state()).output;
  }
  void rewind() override { state_.reset(); }
  std::int64_t state_bytes() const override { return state_.bytes(); }
  std::vector<at::Tensor> leaves() const override {
    std::vector<at::Tensor> tensors = mechanism_->parameters();
    for (const auto& [role, tensor] : new_.tensors) tensors.push_back(tensor);
    return tensors;
  }
  std::vector<std::int64_t> output_shape() const override {
    const Problem& problem = mechanism_->problem;
    return {problem.batch, problem.heads, problem.length - past_, problem.value_dim};
  }
  std::vector<CallInput> inputs() const override {
    std::vector<CallInput> all;
    for (const Role& role : mechanism_->roles()) {
      if (role.source != Source::latent_stream) all.push_back({role.name, new_[role.name], 2});
    }
    return all;
  }
  void exchange(std::vector<CallInput>& others) override {
    for (CallInput& other : others) std::swap(new_.tensors.at(other.name), other.tensor);
  }
  bool is_mix() const override { return true; }
  /// The new tokens are a part of all inputs, and what is exchanged for them holds the same.
  InnerMix mix(std::size_t) override { return {*mechanism_, inputs_, 0, past_}; }

 private:
  std::shared_ptr<Mechanism> mechanism_;
  Implementation implementation_;
  std::int64_t past_;
  Inputs inputs_;  ///< of all tokens
  Inputs new_;     ///< of those after the past
  ResettableState state_;
};

class LayerTarget final : public BenchmarkTarget {
 public:
  LayerTarget(const std::shared_ptr<Mechanism>& mechanism, const Implementation& implementation,
              const CallSettings& settings, std::uint64_t seed)
      : mechanism_(mechanism),
        scope_(settings.scope),
        mask_(mask_of(settings)),
        layer_(std::make_shared<Layer>(mechanism, implementation, settings.scope, seed)) {
    if (settings.positions == training::Positions::rotary) layer_->use_rotary_positions();
    const Problem& problem = settings.problem;
    const auto tokens = [&](std::int64_t length, std::uint64_t own_seed) {
      return seeded_normal({problem.batch, length, problem.width()}, own_seed, settings.input_scale,
                           scalar_type(problem.dtype), problem.device)
          .requires_grad_(settings.has_backward());
    };
    tokens_ = tokens(problem.length, seed + 2);
    memory_ = problem.pattern == Pattern::cross ? tokens(problem.key_length, seed + 3) : tokens_;
    if (const std::int64_t latents = stream_tokens(*mechanism); latents > 0) {
      latents_ = tokens(latents, seed + 4);
    }
  }

  at::Tensor forward() override {
    return layer_->forward(tokens_, memory_, mask_, latents_).output;
  }
  std::vector<at::Tensor> leaves() const override {
    std::vector<at::Tensor> tensors = layer_->parameters();
    tensors.push_back(tokens_);
    if (!memory_.is_same(tokens_)) tensors.push_back(memory_);
    if (latents_.defined()) tensors.push_back(latents_);
    return tensors;
  }
  std::vector<std::int64_t> output_shape() const override {
    const Problem& problem = mechanism_->problem;
    if (scope_ == Scope::layer) return {problem.batch, problem.length, problem.width()};
    return {problem.batch, problem.heads, problem.length, problem.value_dim};
  }
  std::vector<CallInput> inputs() const override {
    std::vector<CallInput> all{{"tokens", tokens_, 1}};
    if (!memory_.is_same(tokens_)) all.push_back({"key tokens", memory_, 1});
    if (latents_.defined()) all.push_back({"latents", latents_, 1});
    return all;
  }
  void exchange(std::vector<CallInput>& others) override {
    const bool one_sequence = memory_.is_same(tokens_);
    auto other = others.begin();
    std::swap(tokens_, (other++)->tensor);
    if (one_sequence) {
      memory_ = tokens_;
    } else {
      std::swap(memory_, (other++)->tensor);
    }
    if (latents_.defined()) std::swap(latents_, other->tensor);
  }
  bool is_mix() const override { return scope_ == Scope::projected; }
  InnerMix mix(std::size_t) override {
    const at::NoGradGuard no_grad;
    return {*mechanism_, layer_->project(tokens_, memory_, latents_, nullptr, mask_)};
  }

 private:
  std::shared_ptr<Mechanism> mechanism_;
  Scope scope_;
  at::Tensor mask_;
  std::shared_ptr<Layer> layer_;
  at::Tensor tokens_;
  at::Tensor memory_;   ///< the key tokens: `tokens_` itself unless the pattern is cross
  at::Tensor latents_;  ///< the stream, where the mechanism has one
};

/// Random token ids in, logits of all tokens out.
class ModelTarget final : public BenchmarkTarget {
 public:
  ModelTarget(const MakeMixer& make, const CallSettings& settings, std::uint64_t seed)
      : model_(std::make_shared<training::Model>(make, *settings.model, seed)),
        shape_{settings.problem.batch, settings.problem.length, settings.model->vocabulary},
        ids_(at::randint(settings.model->vocabulary,
                         {settings.problem.batch, settings.problem.length},
                         at::detail::createCPUGenerator(seed + 2), at::kLong)
                 .to(at::Device(settings.problem.device))),
        mask_(mask_of(settings)) {}

  at::Tensor forward() override { return model_->forward(ids_, mask_); }
  std::vector<at::Tensor> leaves() const override { return model_->parameters(); }
  std::vector<std::int64_t> output_shape() const override { return shape_; }
  std::vector<CallInput> inputs() const override { return {{"token ids", ids_, 1}}; }
  void exchange(std::vector<CallInput>& others) override { std::swap(ids_, others.front().tensor); }
  std::size_t mixes() const override { return model_->mixes(); }
  InnerMix mix(std::size_t index) override {
    const at::NoGradGuard no_grad;
    return {model_->mechanism(index), model_->mix_inputs(index, ids_, mask_), index};
  }

 private:
  std::shared_ptr<training::Model> model_;
  std::vector<std::int64_t> shape_;
  at::Tensor ids_;
  at::Tensor mask_;
};

}  // namespace

std::unique_ptr<BenchmarkTarget> make_target(const MakeMixer& make, const CallSettings& settings,
                                             std::uint64_t seed) {
  if (settings.model) return std::make_unique<ModelTarget>(make, settings, seed);
  const Mixer mixer = make(0);
  if (settings.past > 0) {
    return std::make_unique<ContinuedTarget>(mixer.mechanism, mixer.implementation, settings, seed);
  }
  if (settings.scope == Scope::mix) {
    return std::make_unique<MixTarget>(mixer.mechanism, mixer.implementation, settings, seed);
  }
  return std::make_unique<LayerTarget>(mixer.mechanism, mixer.implementation, settings, seed);
}

}  // namespace attnbench::tasks::call
