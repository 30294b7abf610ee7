#include "tasks/kernel/work.hpp"

#include <nlohmann/json.hpp>

#include "attention/layer.hpp"
#include "tasks/check.hpp"
#include "tasks/forecast.hpp"
#include "tasks/kernel/memory.hpp"
#include "tasks/kernel/settings.hpp"

namespace attnbench::tasks::kernel {
namespace {

class KernelWork final : public Work {
 public:
  KernelWork(const Registry& registry, const Cell& cell, const Forecast& forecast)
      : registry_(registry),
        cell_(cell),
        forecast_(forecast),
        settings_(settings_from(cell)),
        implementation_(chosen(registry, cell, forecast)) {}

  void prepare(Context& context) override {
    at::manual_seed(context.seed());
    mechanism_ = make_mechanism(registry_, cell_, forecast_);
    if (settings_.scope == Scope::mix) {
      inputs_ = random_inputs(*mechanism_, context.seed(), settings_.input_scale,
                              settings_.has_backward());
    } else {
      prepare_layer(context);
    }
    if (!settings_.has_backward()) return;
    const Problem& problem = settings_.problem;
    const std::vector<std::int64_t> shape =
        settings_.scope == Scope::layer
            ? std::vector<std::int64_t>{problem.batch, problem.length, problem.width()}
            : std::vector<std::int64_t>{problem.batch, problem.heads, problem.length,
                                        problem.value_dim};
    upstream_ = seeded_normal(shape, context.seed() + 1, 1, scalar_type(problem.dtype));
  }

  Json check(Context& context) override {
    Inputs inputs;
    {
      const at::NoGradGuard no_grad;
      inputs = layer_ ? layer_->project(tokens_, memory_tokens_, latents_) : inputs_;
    }
    return check_mix({registry_.entry(cell_.mechanism), implementation_,
                      registry_.reference(cell_.mechanism), *mechanism_, inputs, context.seed()},
                     settings_.has_backward());
  }

  Json run(Context& context) override {
    Json sections = {
        {"chosen",
         {{"implementation", forecast_.implementation}, {"reason", forecast_.choice_reason}}}};
    if (context.round() == 0) {
      sections["memory"] = metered({settings_.pass, [this] { return forward(); }, upstream_,
                                    [this] { clear_gradients(); }, input_bytes()},
                                   context.memory());
    }
    time(context);
    return sections;
  }

 private:
  void prepare_layer(Context& context) {
    const Problem& problem = settings_.problem;
    const auto tokens = [&](std::int64_t length, std::uint64_t seed) {
      return seeded_normal({problem.batch, length, problem.width()}, seed, settings_.input_scale,
                           scalar_type(problem.dtype))
          .requires_grad_(settings_.has_backward());
    };
    layer_ = std::make_shared<Layer>(mechanism_, implementation_, settings_.scope, context.seed());
    tokens_ = tokens(problem.length, context.seed() + 2);
    memory_tokens_ = problem.pattern == Pattern::cross
                         ? tokens(problem.key_length, context.seed() + 3)
                         : tokens_;
    for (const Role& role : mechanism_->roles()) {
      if (role.source != Source::latent_stream) continue;
      latents_ = tokens(mechanism_->options.integer("latents_per_head"), context.seed() + 4);
    }
  }

  at::Tensor forward() {
    if (layer_) return layer_->forward(tokens_, memory_tokens_, {}, latents_).output;
    return implementation_.mix(*mechanism_, inputs_, nullptr).output;
  }

  /// Every tensor that the pass reads and that gets a gradient where there is a backward pass.
  std::vector<at::Tensor> leaves() const {
    std::vector<at::Tensor> tensors = layer_ ? layer_->parameters() : mechanism_->parameters();
    for (const auto& [role, tensor] : inputs_.tensors) tensors.push_back(tensor);
    if (tokens_.defined()) tensors.push_back(tokens_);
    if (memory_tokens_.defined() && !memory_tokens_.is_same(tokens_)) {
      tensors.push_back(memory_tokens_);
    }
    if (latents_.defined()) tensors.push_back(latents_);
    return tensors;
  }

  void clear_gradients() {
    for (at::Tensor& leaf : leaves_) leaf.mutable_grad().reset();
  }

  std::int64_t input_bytes() {
    leaves_ = leaves();
    std::int64_t sum = 0;
    for (const at::Tensor& leaf : leaves_) sum += static_cast<std::int64_t>(leaf.nbytes());
    return sum;
  }

  void time(Context& context) {
    leaves_ = leaves();
    const char* what = to_string(settings_.pass);
    if (settings_.pass == Pass::forward) {
      const at::NoGradGuard no_grad;
      context.measure(what, [this] { forward(); });
      return;
    }
    const at::AutoGradMode with_grad(true);
    if (settings_.pass == Pass::forward_backward) {
      context.measure(
          what, [this] { forward().backward(upstream_); }, [this] { clear_gradients(); });
      return;
    }
    at::Tensor output;
    context.measure(
        what, [&] { output.backward(upstream_); },
        [&] {
          clear_gradients();
          output = forward();
        });
  }

  const Registry& registry_;
  const Cell cell_;
  const Forecast forecast_;
  const Settings settings_;
  const Implementation implementation_;
  std::shared_ptr<Mechanism> mechanism_;
  std::shared_ptr<Layer> layer_;
  Inputs inputs_;
  at::Tensor tokens_;
  at::Tensor memory_tokens_;
  at::Tensor latents_;  ///< the stream, where the mechanism has one
  at::Tensor upstream_;
  std::vector<at::Tensor> leaves_;
};

}  // namespace

std::unique_ptr<Work> make_work(const Registry& registry, const Cell& cell,
                                const Forecast& forecast) {
  return std::make_unique<KernelWork>(registry, cell, forecast);
}

}  // namespace attnbench::tasks::kernel
