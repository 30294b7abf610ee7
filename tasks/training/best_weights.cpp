#include "tasks/training/best_weights.hpp"

#include <cstdio>

namespace attnbench::tasks::training {

std::int64_t best_step(const TrainingState& state, Measure measure) {
  const auto goodness = [&](const result::CurvePoint& point) {
    return measure == Measure::loss ? -point.validation_loss.value() : point.validation_accuracy;
  };
  const result::CurvePoint* best = nullptr;
  for (const result::CurvePoint& point : state.curve) {
    if (best == nullptr || goodness(point) > goodness(*best)) best = &point;
  }
  return best == nullptr ? 0 : best->step.value();
}

void BestWeights::take(std::int64_t step) {
  weights_.clear();
  for (const auto& [name, weight] : weights_of(model_)) {
    weights_[name] = weight.cpu().clone();
  }
  step_ = step;
  if (checkpoints_ == nullptr) return;
  try {
    checkpoints_->save_best(Checkpoint{Json{{"step", step}}, weights_});
  } catch (const CheckpointError& error) {
    notes_.push_back("at step " + std::to_string(step) + " " + error.what());
    std::fprintf(stderr, "%s\n", notes_.back().c_str());
  }
}

void BestWeights::resume(const TrainingState& state) {
  const std::int64_t wanted = best_step(state, measure_);
  if (checkpoints_ == nullptr || wanted == 0) return;
  std::optional<Checkpoint> kept = checkpoints_->load_best();
  const std::int64_t step = kept ? kept->facts.value("step", std::int64_t{0}) : 0;
  if (step == wanted) {
    weights_ = std::move(kept->tensors);
    step_ = step;
  } else if (step <= state.step) {
    notes_.push_back(
        checkpoints_->best().string() + " does not hold the weights of step " +
        std::to_string(wanted) +
        ", the best validation so far: unless a later one is better, the last weights are "
        "scored");
    std::fprintf(stderr, "%s\n", notes_.back().c_str());
  }
}

void BestWeights::give(ProcessGroup* group) {
  const at::NoGradGuard no_grad;
  const bool first = group == nullptr || group->rank() == 0;
  for (auto& [name, weight] : weights_of(model_)) {
    at::Tensor kept = weight.cpu().contiguous();
    if (first && step_ > 0) kept = weights_.at(name);
    if (group != nullptr) group->broadcast(kept);
    at::Tensor(weight).copy_(kept);
  }
}

}  // namespace attnbench::tasks::training
