#include "tasks/training/training_state.hpp"

#include <algorithm>
#include <limits>

#include "core/errors.hpp"

namespace attnbench::tasks::training {
namespace {

constexpr const char* weight_prefix = "weight/";
constexpr const char* optimiser_prefix = "optimiser/";

NamedTensors with_prefix(const char* prefix, const NamedTensors& tensors) {
  NamedTensors named;
  for (const auto& [name, tensor] : tensors) named[prefix + name] = tensor.detach().cpu();
  return named;
}

NamedTensors without_prefix(const std::string& prefix, const NamedTensors& tensors) {
  NamedTensors named;
  for (const auto& [name, tensor] : tensors) {
    if (name.rfind(prefix, 0) == 0) named[name.substr(prefix.size())] = tensor;
  }
  return named;
}

TrainingState training_state_from(const Json& facts) {
  try {
    return facts.get<TrainingState>();
  } catch (const std::exception& error) {
    throw Error(std::string("holds no state of a training: ") + error.what());
  }
}

/// Throws Error where one is missing or of another shape.
void expect_weights(const NamedTensors& saved, const torch::nn::Module& model) {
  for (const auto& [name, weight] : weights_of(model)) {
    const auto found = saved.find(name);
    if (found == saved.end() || found->second.sizes() != weight.sizes()) {
      throw Error("has a weight " + name + " that is missing or of another shape");
    }
  }
}

bool all_finite(const NamedTensors& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (!at::isfinite(tensor).all().item<bool>()) return false;
  }
  return true;
}

}  // namespace

NamedTensors weights_of(const torch::nn::Module& model) {
  NamedTensors weights;
  for (const auto& item : model.named_parameters()) weights[item.key()] = item.value().detach();
  for (const auto& item : model.named_buffers()) weights[item.key()] = item.value().detach();
  return weights;
}

std::optional<Checkpoint> checkpoint_of(const TrainingState& state, const torch::nn::Module& model,
                                        const Optimiser& optimiser) {
  Checkpoint checkpoint{state, with_prefix(weight_prefix, weights_of(model))};
  if (!all_finite(checkpoint.tensors)) return std::nullopt;
  checkpoint.tensors.merge(with_prefix(optimiser_prefix, optimiser.state()));
  return checkpoint;
}

NamedTensors saved_weights(const Checkpoint& checkpoint) {
  // Weights kept as the best on validation have no optimiser state beside them, and no prefix.
  NamedTensors saved = without_prefix(weight_prefix, checkpoint.tensors);
  return saved.empty() ? checkpoint.tensors : saved;
}

void set_weights(const NamedTensors& saved, torch::nn::Module& model) {
  const at::NoGradGuard no_grad;
  expect_weights(saved, model);
  for (const auto& [name, weight] : weights_of(model)) at::Tensor(weight).copy_(saved.at(name));
}

TrainingState restore(const Checkpoint& checkpoint, torch::nn::Module& model,
                      Optimiser& optimiser) {
  const NamedTensors saved = without_prefix(weight_prefix, checkpoint.tensors);
  // Check everything before changing anything: the model may have to train without it.
  expect_weights(saved, model);
  const TrainingState state = training_state_from(checkpoint.facts);
  optimiser.set_state(without_prefix(optimiser_prefix, checkpoint.tensors), state.step);
  set_weights(saved, model);
  return state;
}

void broadcast_state(ProcessGroup& group, TrainingState& state, torch::nn::Module& model,
                     Optimiser& optimiser) {
  const std::string text = Json(state).dump();
  at::Tensor size = at::tensor({static_cast<std::int64_t>(text.size())}, at::kLong);
  group.broadcast(size);
  at::Tensor bytes = at::zeros({size.item<std::int64_t>()}, at::kByte);
  if (group.rank() == 0) std::copy(text.begin(), text.end(), bytes.data_ptr<std::uint8_t>());
  group.broadcast(bytes);
  const auto* begin = bytes.data_ptr<std::uint8_t>();
  state = training_state_from(Json::parse(begin, begin + bytes.size(0)));
  if (state.step == 0) return;
  const at::NoGradGuard no_grad;
  for (auto& [name, weight] : weights_of(model)) {
    at::Tensor flat = weight.cpu().contiguous();
    group.broadcast(flat);
    at::Tensor(weight).copy_(flat);
  }
  NamedTensors means = optimiser.state();
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    for (const char* part : {".mean", ".square"}) {
      at::Tensor& mean = means[item.key() + part];
      mean = mean.defined() ? mean.cpu().contiguous() : at::zeros_like(item.value()).cpu();
      group.broadcast(mean);
    }
  }
  optimiser.set_state(means, state.step);
}

bool has_converged(const TrainingState& state, double least_gain) {
  if (state.stopped == "accuracy") return true;
  const std::size_t epochs = state.curve.size();
  if (epochs < 4) return false;
  const std::size_t last = (epochs + 3) / 4;
  double before = 0;
  double after = 0;
  for (std::size_t i = 0; i < epochs; ++i) {
    double& best = i + last < epochs ? before : after;
    best = std::max(best, state.curve[i].validation_accuracy);
  }
  return after - before < least_gain;
}

bool loss_has_converged(const TrainingState& state, double least_share) {
  const std::size_t count = state.curve.size();
  if (count < 4) return false;
  const std::size_t last = (count + 3) / 4;
  double before = std::numeric_limits<double>::infinity();
  double after = before;
  for (std::size_t i = 0; i < count; ++i) {
    double& least = i + last < count ? before : after;
    least = std::min(least, state.curve[i].validation_loss.value());
  }
  return after > before * (1 - least_share);
}

}  // namespace attnbench::tasks::training
