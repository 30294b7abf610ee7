#include "tasks/training/optimiser.hpp"

#include <torch/optim/adamw.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "tasks/settings.hpp"

namespace attnbench::tasks::training {
namespace {

constexpr Names<RateSchedule, 7> schedules = {
    {"constant", RateSchedule::constant},
    {"cosine", RateSchedule::cosine},
    {"cosine_by_epoch", RateSchedule::cosine_by_epoch},
    {"linear", RateSchedule::linear},
    {"inverse_square_root", RateSchedule::inverse_square_root},
    {"drop", RateSchedule::drop},
    {"one_cycle", RateSchedule::one_cycle}};

double half_cosine(double share) { return (1 + std::cos(M_PI * share)) / 2; }

/// LibTorch keys the state by the weight's address: as text in 1.13, as a pointer in 2.
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

/// Embedding tables are matrices, but not the weights of products.
bool is_product(const std::string& name, const at::Tensor& weight) {
  return weight.dim() >= 2 && name != "embedding" && name != "positions" && name != "latents";
}

}  // namespace

const char* to_string(RateSchedule schedule) { return name_of(schedules, schedule); }
std::vector<std::string> schedule_names() { return all_names(schedules); }
RateSchedule schedule_from(const std::string& name) {
  return value_named("schedule", schedules, name);
}

double LearningRateSchedule::cycle(std::int64_t step, double start, double top, double end) const {
  const auto at = static_cast<double>(step);
  const auto peak = static_cast<double>(warm_up_steps - 1);
  const auto last = static_cast<double>(steps() - 1);
  if (at <= peak) return peak > 0 ? start + (top - start) * at / peak : top;
  return top + (end - top) * (at - peak) / (last - peak);
}

double LearningRateSchedule::beta_1(std::int64_t step, double own) const {
  return schedule == RateSchedule::one_cycle ? cycle(step, 0.95, 0.85, 0.95) : own;
}

double LearningRateSchedule::factor(std::int64_t step) const {
  if (schedule == RateSchedule::one_cycle) return cycle(step, 1.0 / 25, 1, 1.0 / 250000);
  const auto at = static_cast<double>(step);
  const auto warm = static_cast<double>(warm_up_steps);
  if (step < warm_up_steps) return (at + 1) / warm;
  const double share = (at - warm) / std::max(1.0, static_cast<double>(steps()) - warm);
  switch (schedule) {
    case RateSchedule::constant:
      return 1;
    case RateSchedule::cosine:
      return half_cosine(share);
    case RateSchedule::cosine_by_epoch:
      return half_cosine(
          static_cast<double>(step / steps_per_epoch) /
          std::ceil(static_cast<double>(steps()) / static_cast<double>(steps_per_epoch)));
    case RateSchedule::linear:
      return 1 - share;
    case RateSchedule::inverse_square_root:
      return std::sqrt(std::max(1.0, warm) / (at + 1));
    case RateSchedule::drop:
      return step < drop_after ? 1 : 0.1;
    case RateSchedule::one_cycle:
      break;
  }
  return 1;
}

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
  const at::NoGradGuard no_grad;
  if (options_.clip_value > 0) {
    for (const auto& [name, weight] : weights_) {
      if (!weight.grad().defined()) continue;
      at::Tensor(weight.grad()).clamp_(-options_.clip_value, options_.clip_value);
    }
  }
  if (options_.clip <= 0) return;
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

void Optimiser::step(double learning_rate, double beta_1) {
  clip_gradients();
  for (auto& group : adam_->param_groups()) {
    auto& options = static_cast<torch::optim::AdamWOptions&>(group.options());
    options.lr(learning_rate);
    options.betas({beta_1, options_.beta_2});
  }
  adam_->step();
  drop_gradients();
}

void Optimiser::drop_gradients() {
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

}  // namespace attnbench::tasks::training
