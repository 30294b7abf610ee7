#include "tasks/training/training_state.hpp"

#include <algorithm>

#include "core/errors.hpp"

namespace attnbench::tasks::learning {
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

Json facts_of(const Progressed& at) {
  return {{"step", at.step},
          {"stopped", at.stopped},
          {"curve", at.curve},
          {"epoch_loss", at.epoch_loss},
          {"epoch_questions", at.epoch_questions},
          {"epoch_right", at.epoch_right},
          {"step_seconds", at.step_seconds}};
}

Progressed progressed_from(const Json& facts) {
  try {
    Progressed at;
    at.step = facts.at("step");
    at.stopped = facts.at("stopped");
    at.curve = facts.at("curve");
    at.epoch_loss = facts.at("epoch_loss");
    at.epoch_questions = facts.at("epoch_questions");
    at.epoch_right = facts.at("epoch_right");
    at.step_seconds = facts.at("step_seconds");
    return at;
  } catch (const Json::exception& error) {
    throw Error(std::string("does not say where training stood: ") + error.what());
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

std::optional<Checkpoint> checkpoint_of(const Progressed& at, const torch::nn::Module& model,
                                        const Optimiser& optimiser) {
  Checkpoint checkpoint{facts_of(at), with_prefix(weight_prefix, weights_of(model))};
  if (!all_finite(checkpoint.tensors)) return std::nullopt;
  checkpoint.tensors.merge(with_prefix(optimiser_prefix, optimiser.state()));
  return checkpoint;
}

Progressed take_up(const Checkpoint& checkpoint, torch::nn::Module& model, Optimiser& optimiser) {
  const at::NoGradGuard no_grad;
  const NamedTensors taken = without_prefix(weight_prefix, checkpoint.tensors);
  const NamedTensors weights = weights_of(model);
  // All of it is looked at before any of it is taken: the model may have to go on without.
  for (const auto& [name, weight] : weights) {
    const auto found = taken.find(name);
    if (found == taken.end() || found->second.sizes() != weight.sizes()) {
      throw Error("has a weight " + name + " that is missing or of another shape");
    }
  }
  const Progressed at = progressed_from(checkpoint.facts);
  optimiser.set_state(without_prefix(optimiser_prefix, checkpoint.tensors), at.step);
  for (const auto& [name, weight] : weights) at::Tensor(weight).copy_(taken.at(name));
  return at;
}

void share_first(Crew& crew, Progressed& at, torch::nn::Module& model, Optimiser& optimiser) {
  const std::string text = facts_of(at).dump();
  at::Tensor size = at::tensor({static_cast<std::int64_t>(text.size())}, at::kLong);
  crew.take_first(size);
  at::Tensor letters = at::zeros({size.item<std::int64_t>()}, at::kByte);
  if (crew.rank() == 0) std::copy(text.begin(), text.end(), letters.data_ptr<std::uint8_t>());
  crew.take_first(letters);
  const auto* begin = letters.data_ptr<std::uint8_t>();
  at = progressed_from(Json::parse(begin, begin + letters.size(0)));
  if (at.step == 0) return;
  const at::NoGradGuard no_grad;
  for (auto& [name, weight] : weights_of(model)) {
    at::Tensor flat = weight.cpu().contiguous();
    crew.take_first(flat);
    at::Tensor(weight).copy_(flat);
  }
  NamedTensors state = optimiser.state();
  for (const auto& item : model.named_parameters()) {
    if (!item.value().requires_grad()) continue;
    for (const char* part : {".mean", ".square"}) {
      at::Tensor& own = state[item.key() + part];
      own = own.defined() ? own.cpu().contiguous() : at::zeros_like(item.value()).cpu();
      crew.take_first(own);
    }
  }
  optimiser.set_state(state, at.step);
}

bool has_converged(const Progressed& progressed, double least_gain) {
  if (progressed.stopped == "accuracy") return true;
  const std::size_t epochs = progressed.curve.size();
  if (epochs < 4) return false;
  const std::size_t last = (epochs + 3) / 4;
  double before = 0;
  double after = 0;
  for (std::size_t i = 0; i < epochs; ++i) {
    double& best = i + last < epochs ? before : after;
    best = std::max(best, progressed.curve[i].at("validation_accuracy").get<double>());
  }
  return after - before < least_gain;
}

}  // namespace attnbench::tasks::learning
