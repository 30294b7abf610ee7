// The mqar task: multi-query associative recall (Arora et al. 2024), trained from nothing. How many
// of the values that it was shown a model finds again, by mechanism, size and state.
#include <nlohmann/json.hpp>

#include "tasks/call/cost.hpp"
#include "tasks/forecast.hpp"
#include "tasks/learning/cost.hpp"
#include "tasks/learning/order.hpp"
#include "tasks/learning/settings.hpp"
#include "tasks/mqar/dump.hpp"
#include "tasks/mqar/settings.hpp"
#include "tasks/mqar/work.hpp"
#include "tasks/sizes.hpp"

namespace attnbench::tasks {
namespace mqar {
namespace {

Problem problem_of(const Options& settings, const Plan& plan) {
  Options sized = settings;
  sized.set("length", plan.longest());
  Problem problem = problem_from(sized);
  problem.gradient = true;
  return problem;
}

learning::Effort effort_of(const Options& settings, const Plan& plan) {
  learning::Order order;
  double labels = 0;
  double examples = 0;
  for (const Segment& segment : plan.train) {
    order.sizes.push_back(segment.examples);
    examples += static_cast<double>(segment.examples);
    labels += static_cast<double>(segment.examples * segment.pairs);
  }
  order.batch = settings.integer("batch");
  return {order.steps_per_epoch() * settings.integer("epochs"),
          labels / examples * static_cast<double>(order.batch)};
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

class RecallTaskData final : public TaskData {
 public:
  std::vector<Option> settings() const override {
    std::vector<Option> declared = mqar::data_settings();
    for (Option& one : learning::learning_settings()) {
      if (one.name == "data_seed") declared.push_back(std::move(one));
    }
    return declared;
  }
  Json write(const Options& settings, std::uint64_t seed,
             const std::filesystem::path& folder) const override {
    return dump(plan_from(settings, seed), folder);
  }
};

class RecallTask final : public Task {
 public:
  std::string name() const override { return "mqar"; }
  std::string title() const override {
    return "Recall of values by their keys, after training (MQAR)";
  }
  std::vector<Option> settings() const override {
    std::vector<Option> declared = learning::learning_settings();
    for (Option& one : mqar::data_settings()) declared.push_back(std::move(one));
    return declared;
  }
  const TaskData* data() const override { return &data_; }
  std::vector<std::string> figures() const override {
    return {"accuracy", "accuracy_over_state", "accuracy_over_learning_rate", "learning_curves",
            "accuracy_by_look_back"};
  }
  std::string axis() const override { return "length"; }

  Forecast forecast(const Registry& registry, const Cell& cell) const override {
    const Plan plan = plan_from(cell.settings, 0);
    const RecallData refuses_what_cannot_be_made(plan);
    const learning::ModelOptions model = model_options(cell.settings);
    if (learning::mechanism_blocks(model) == 0) {
      throw UsageError("one layer of the layout convolution_first holds no mechanism");
    }
    if (model.tokens_per_position > 1 && model.tied_head) {
      throw UsageError("the variant stacked needs tied_head false: its embedding is narrower");
    }
    Forecast forecast = forecast_mix(registry, cell, problem_of(cell.settings, plan));
    forecast.once = true;
    if (!forecast.support) return forecast;
    if (!chosen(registry, cell, forecast).differentiable) {
      forecast.support = Support::no("the implementation " + forecast.implementation +
                                     " has no backward pass, and training needs one");
      return forecast;
    }
    call::Settings layer;
    layer.problem = forecast.problem;
    layer.pass = call::Pass::forward_backward;
    layer.scope = Scope::layer;
    call::price(forecast, registry, cell, layer);
    const learning::Effort effort = effort_of(cell.settings, plan);
    forecast.peak_bytes =
        learning::training_peak_bytes(forecast.peak_bytes, layer_weights(registry, cell, forecast),
                                      model, forecast.problem, effort);
    forecast.cost = learning::training_cost(forecast.cost, model, forecast.problem, effort);
    return forecast;
  }

  std::unique_ptr<Work> make(const Registry& registry, const Cell& cell) const override {
    const Forecast known = forecast(registry, cell);
    if (!known.support) throw UnsupportedError(known.support.reason);
    return make_work(registry, cell, known);
  }

 private:
  RecallTaskData data_;
};

}  // namespace
}  // namespace mqar

std::unique_ptr<Task> make_mqar() { return std::make_unique<mqar::RecallTask>(); }

}  // namespace attnbench::tasks
