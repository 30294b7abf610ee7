#include "tasks/training/task.hpp"

#include <nlohmann/json.hpp>

#include "tasks/call/cost.hpp"
#include "tasks/forecast.hpp"
#include "tasks/training/cost.hpp"
#include "tasks/training/dump.hpp"
#include "tasks/training/order.hpp"
#include "tasks/training/settings.hpp"
#include "tasks/training/work.hpp"
#include "tasks/sizes.hpp"

namespace attnbench::tasks::learning {
namespace {

Problem problem_of(const Options& settings, const DataSet& data) {
  Options sized = settings;
  sized.set("length", longest(data));
  Problem problem = problem_from(sized);
  problem.gradient = true;
  return problem;
}

Effort effort_of(const Options& settings, const DataSet& data) {
  Order order;
  double labels = 0;
  double examples = 0;
  for (const SegmentSize& segment : data.segments(Split::train)) {
    order.sizes.push_back(segment.examples);
    examples += static_cast<double>(segment.examples);
    labels += static_cast<double>(segment.examples) * segment.labels;
  }
  order.batch = settings.integer("batch");
  return {order.steps_per_epoch() * settings.integer("epochs"),
          labels / examples * static_cast<double>(order.batch)};
}

/// What the mix is given decides which implementation does it and what that costs. Its parameters
/// are in the dtype of all weights, which is the forecast's.
Forecast forecast_training_mix(const Registry& registry, const Cell& cell,
                               const ModelOptions& model, const Problem& problem) {
  Problem mixed = problem;
  mixed.dtype = mix_dtype(model, problem.dtype);
  Forecast forecast = forecast_mix(registry, cell, mixed);
  forecast.problem.dtype = problem.dtype;
  if (forecast.support || mixed.dtype == problem.dtype) return forecast;
  if (forecast_mix(registry, cell, problem).support) {
    forecast.support = Support::no(std::string("autocast gives the mix ") + to_string(mixed.dtype) +
                                   ": " + forecast.support.reason);
  }
  return forecast;
}

double layer_weights(const Registry& registry, const Cell& cell, const Forecast& forecast) {
  const SingleThread alone;
  const auto mechanism = make_on_cpu(registry, cell, forecast);
  const Problem& problem = forecast.problem;
  double weights = static_cast<double>(problem.width() * problem.heads * problem.value_dim);
  for (const Role& role : mechanism->roles()) {
    if (role.feed == Feed::slice) continue;
    const std::int64_t heads = role.source == Source::key_tokens ? problem.kv_heads : problem.heads;
    weights += static_cast<double>(problem.width() * heads * role.width);
  }
  for (const at::Tensor& own : mechanism->parameters()) {
    weights += static_cast<double>(own.numel());
  }
  return weights;
}

}  // namespace

std::vector<Option> TrainingTask::settings() const {
  std::vector<Option> declared = learning_settings();
  for (Option& one : data_settings()) declared.push_back(std::move(one));
  return declared;
}

std::vector<std::string> TrainingTask::figures() const {
  return {"accuracy",
          "accuracy_over_state",
          "accuracy_over_time",
          "accuracy_over_memory",
          "accuracy_over_learning_rate",
          "learning_curves",
          "accuracy_by_look_back"};
}

ModelOptions TrainingTask::model_options(const Options& settings) const {
  ModelOptions model = model_options_from(settings);
  fit(settings, model);
  return model;
}

Forecast TrainingTask::forecast(const Registry& registry, const Cell& cell) const {
  const std::unique_ptr<DataSet> data = data_set(cell.settings, 0);
  const ModelOptions model = model_options(cell.settings);
  const Problem problem = problem_of(cell.settings, *data);
  require_fitting(model, problem);
  Forecast forecast = forecast_training_mix(registry, cell, model, problem);
  forecast.once = true;
  if (!forecast.support) return forecast;
  if (model.positions == Positions::rotary) {
    const SingleThread alone;
    forecast.support = rotary_support(*make_on_cpu(registry, cell, forecast));
    if (!forecast.support) return forecast;
  }
  if (!chosen(registry, cell, forecast).differentiable) {
    forecast.support = Support::no("the implementation " + forecast.implementation +
                                   " has no backward pass, and training needs one");
    return forecast;
  }
  call::Settings layer;
  layer.problem = forecast.problem;
  layer.problem.dtype = mix_dtype(model, problem.dtype);
  layer.pass = call::Pass::forward_backward;
  layer.scope = Scope::layer;
  call::price(forecast, registry, cell, layer);
  const Effort effort = effort_of(cell.settings, *data);
  forecast.peak_bytes =
      training_peak_bytes(forecast.peak_bytes, layer_weights(registry, cell, forecast), model,
                          forecast.problem, effort);
  forecast.cost = training_cost(forecast.cost, model, forecast.problem, effort);
  return forecast;
}

std::unique_ptr<Work> TrainingTask::make(const Registry& registry, const Cell& cell) const {
  const Forecast known = forecast(registry, cell);
  if (!known.support) throw UnsupportedError(known.support.reason);
  return make_work(*this, registry, cell, known);
}

std::vector<Option> TrainingTask::Files::settings() const {
  std::vector<Option> declared = task_.data_settings();
  for (Option& one : learning_settings()) {
    if (one.name == "data_seed") declared.push_back(std::move(one));
  }
  return declared;
}

Json TrainingTask::Files::write(const Options& settings, std::uint64_t seed,
                                const std::filesystem::path& folder) const {
  return dump(*task_.data_set(settings, seed), folder);
}

}  // namespace attnbench::tasks::learning
