#include "tasks/training/optimiser.hpp"

#include <torch/optim/adamw.h>

#include <cmath>
#include <sstream>

#include "core/errors.hpp"

namespace attnbench::tasks::learning {
namespace {

/// LibTorch keeps the state by the weight's address, which 1.13 writes as text and 2 does not.
template <class Map>
typename Map::key_type place_in(const Map&, const at::Tensor& weight) {
  if constexpr (std::is_same_v<typename Map::key_type, std::string>) {
    std::ostringstream text;
    text << weight.unsafeGetTensorImpl();
    return text.str();
  } else {
    return weight.unsafeGetTensorImpl();
  }
}

torch::optim::AdamWOptions adam_options(const OptimiserOptions& options, double decay) {
  return torch::optim::AdamWOptions(options.learning_rate)
      .betas({options.beta_1, options.beta_2})
      .eps(options.epsilon)
      .weight_decay(decay);
}

/// Tables of embeddings are matrices too, but no products.
bool is_product(const std::string& name, const at::Tensor& weight) {
  return weight.dim() >= 2 && name != "embedding" && name != "positions" && name != "latents";
}

}  // namespace

Optimiser::Optimiser(torch::nn::Module& model, const OptimiserOptions& options)
    : options_(options) {
  std::vector<at::Tensor> decaying;
  std::vector<at::Tensor> others;
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    weights_.emplace_back(item.key(), item.value());
    const bool decays = options.decay_all || is_product(item.key(), item.value());
    (decays ? decaying : others).push_back(item.value());
  }
  std::vector<torch::optim::OptimizerParamGroup> groups;
  const auto add = [&](std::vector<at::Tensor> weights, double decay) {
    if (weights.empty()) return;
    groups.emplace_back(std::move(weights),
                        std::make_unique<torch::optim::AdamWOptions>(adam_options(options, decay)));
  };
  add(std::move(decaying), options.weight_decay);
  add(std::move(others), 0);
  adam_ = std::make_unique<torch::optim::AdamW>(std::move(groups), adam_options(options, 0));
}

Optimiser::~Optimiser() = default;

void Optimiser::clip_gradients() {
  if (options_.clip <= 0) return;
  const at::NoGradGuard no_grad;
  at::Tensor squares;
  for (const auto& [name, weight] : weights_) {
    if (!weight.grad().defined()) continue;
    const at::Tensor own = weight.grad().to(at::kFloat).pow(2).sum();
    squares = squares.defined() ? squares + own : own;
  }
  if (!squares.defined()) return;
  const double norm = std::sqrt(squares.item<double>());
  if (norm <= options_.clip) return;
  for (const auto& [name, weight] : weights_) {
    if (weight.grad().defined()) at::Tensor(weight.grad()).mul_(options_.clip / norm);
  }
}

void Optimiser::step(double learning_rate) {
  clip_gradients();
  for (auto& group : adam_->param_groups()) {
    static_cast<torch::optim::AdamWOptions&>(group.options()).lr(learning_rate);
  }
  adam_->step();
  forget_gradients();
}

void Optimiser::forget_gradients() {
  for (auto& [name, weight] : weights_) weight.mutable_grad().reset();
}

at::Tensor Optimiser::gradients() const {
  std::vector<at::Tensor> flat;
  for (const auto& [name, weight] : weights_) {
    const at::Tensor& own = weight.grad();
    flat.push_back(own.defined() ? own.flatten() : at::zeros({weight.numel()}, weight.options()));
  }
  return at::cat(flat).detach();
}

void Optimiser::set_gradients(const at::Tensor& flat) {
  std::int64_t first = 0;
  for (auto& [name, weight] : weights_) {
    weight.mutable_grad() = flat.narrow(0, first, weight.numel()).view(weight.sizes()).clone();
    first += weight.numel();
  }
}

NamedTensors Optimiser::state() const {
  NamedTensors named;
  const auto& kept = adam_->state();
  for (const auto& [name, weight] : weights_) {
    const auto found = kept.find(place_in(kept, weight));
    if (found == kept.end()) continue;
    const auto& own = static_cast<const torch::optim::AdamWParamState&>(*found->second);
    named[name + ".mean"] = own.exp_avg();
    named[name + ".square"] = own.exp_avg_sq();
  }
  return named;
}

void Optimiser::set_state(const NamedTensors& state, std::int64_t steps) {
  auto& kept = adam_->state();
  kept.clear();
  for (const auto& [name, weight] : weights_) {
    const auto mean = state.find(name + ".mean");
    const auto square = state.find(name + ".square");
    if (mean == state.end() || square == state.end()) continue;
    if (mean->second.sizes() != weight.sizes() || square->second.sizes() != weight.sizes()) {
      throw Error("the optimiser's state of " + name + " has another shape");
    }
    auto own = std::make_unique<torch::optim::AdamWParamState>();
    own->step(steps);
    own->exp_avg(mean->second.to(weight.device(), weight.scalar_type(), false, /*copy=*/true));
    own->exp_avg_sq(square->second.to(weight.device(), weight.scalar_type(), false, true));
    kept[place_in(kept, weight)] = std::move(own);
  }
}

}  // namespace attnbench::tasks::learning
