#include "tasks/training/task.hpp"

#include <nlohmann/json.hpp>

#include "core/random.hpp"
#include "tasks/call/settings.hpp"
#include "tasks/forecast.hpp"
#include "tasks/settings.hpp"
#include "tasks/stack.hpp"
#include "tasks/training/prefetcher.hpp"
#include "tasks/training/trainer_options.hpp"

namespace attnbench::tasks::training {
namespace {

/// The sizes of every task, with defaults for training.
std::vector<Option> training_size_settings() {
  std::vector<Option> kept;
  for (Option& size : size_settings()) {
    if (size.name == "input_scale") continue;
    if (size.name == "batch") {
      size.fallback = std::int64_t{64};
      size.meaning = "examples in a step";
    }
    if (size.name == "heads") size.fallback = std::int64_t{1};
    if (size.name == "dtype") {
      size.meaning = "type of weights, and of activations without autocast";
      size.choices = {"float32", "float64"};
    }
    kept.push_back(std::move(size));
  }
  return kept;
}

/// The amount of training.
struct Workload {
  std::int64_t steps = 0;
  double labels_per_step = 0;
};

/// The problem of one mix at that length: the sequences of all towers are one batch.
Problem problem_of(const Options& settings, const DataSet& data, const ModelOptions& model,
                   std::int64_t length) {
  Options sized = settings;
  sized.set("length", mix_length(model, length));
  Problem problem = problem_from(sized);
  problem.batch *= data.towers();
  problem.gradient = true;
  return problem;
}

Workload workload_of(const Options& settings, const DataSet& data) {
  BatchOrder order;
  double labels = 0;
  double examples = 0;
  for (const SegmentSize& segment : data.segments(Split::train)) {
    order.sizes.push_back(segment.examples);
    examples += static_cast<double>(segment.examples);
    labels += static_cast<double>(segment.examples) * segment.labels;
  }
  order.batch = settings.integer("batch");
  const std::int64_t steps = settings.integer("steps");
  return {steps > 0 ? steps : order.steps_per_epoch() * settings.integer("epochs"),
          labels / examples * static_cast<double>(order.batch)};
}

/// The dtype of the mix's inputs decides its implementation and cost; its parameters have the dtype
/// of all weights, which is the forecast's.
TaskForecast forecast_training_mix(const Registry& registry, const ResolvedCell& cell,
                                   const ModelOptions& model, const Problem& problem) {
  Problem mixed = problem;
  mixed.dtype = mix_dtype(model, problem.dtype);
  TaskForecast forecast = forecast_mix(registry, cell, mixed);
  forecast.problem.dtype = problem.dtype;
  if (forecast.support || mixed.dtype == problem.dtype) return forecast;
  if (forecast_mix(registry, cell, problem).support) {
    forecast.support = Support::no(std::string("autocast gives the mix ") + to_string(mixed.dtype) +
                                   ": " + forecast.support.reason);
  }
  return forecast;
}

/// Refuses what mixes neighbouring tokens whatever the key mask says, where `masked`, a setting,
/// masks tokens between others: it would take in what is to be left out.
Support mask_support(const std::string& mechanism, const Options& options,
                     const ModelOptions& model, const std::string& masked) {
  if (masked.empty()) return {};
  const std::string why = " mixes neighbouring tokens, and " + masked +
                          " leaves tokens between others out, which it would take in: choose ";
  const auto found = options.values().find("before");
  const auto* before =
      found == options.values().end() ? nullptr : std::get_if<std::string>(&found->second);
  if (before != nullptr && *before != "none") {
    return Support::no(mechanism + ": before=" + *before + why + "before=none, or no such mask");
  }
  if (model.layout == Layout::convolution_first) {
    return Support::no("layout=convolution_first" + why + "layout=mechanism, or no such mask");
  }
  return {};
}

double layer_weights(const Registry& registry, const ResolvedCell& cell,
                     const TaskForecast& forecast, bool biases) {
  const SingleThread alone;
  const auto mechanism = make_on_cpu(registry, cell, forecast);
  const Problem& problem = forecast.problem;
  const std::int64_t rows = problem.width() + (biases ? 1 : 0);
  std::int64_t out = problem.width() * problem.heads * problem.value_dim;
  if (biases) out += problem.width();
  auto weights = static_cast<double>(out);
  for (const Role& role : mechanism->roles()) {
    if (role.feed == Feed::slice) continue;
    const std::int64_t heads = mechanism->shape_of(role)[1];
    weights += static_cast<double>(rows * heads * role.width);
  }
  for (const at::Tensor& own : mechanism->parameters()) {
    weights += static_cast<double>(own.numel());
  }
  return weights;
}

struct ModelSizes {
  ModelSizes(const ModelOptions& options, const Problem& problem)
      : tokens(static_cast<double>(problem.batch * problem.length)),
        width(static_cast<double>(problem.width())),
        hidden(static_cast<double>(mlp_width(options, problem))),
        layers(static_cast<double>(options.layers)),
        mechanisms(static_cast<double>(mechanism_blocks(options))),
        products(options.mlp == Mlp::gated   ? 3
                 : options.mlp == Mlp::plain ? 2
                                             : 0),
        bytes(static_cast<double>(bytes_of(problem.dtype))),
        product_bytes(static_cast<double>(bytes_of(mix_dtype(options, problem.dtype)))) {}

  double tokens, width, hidden, layers, mechanisms;
  double products;  ///< of the MLP; also the number of hidden tensors kept for the backward pass
  double bytes;
  double product_bytes;
};

/// The cost of all steps. Each reads and writes weights, gradients and the optimiser's means.
/// `layer` is the cost of one attention layer's forward and backward pass at `problem`, in
/// the dtype of products.
Cost training_cost(const Cost& layer, const ModelOptions& options, const Problem& problem,
                   const Workload& workload) {
  const ModelSizes n(options, problem);
  const auto answers = static_cast<double>(outputs(options));
  const auto steps = static_cast<double>(workload.steps);
  // The backward pass of a product is two products of its size.
  const double around = 6 * (n.tokens * n.width * n.layers * n.products * n.hidden +
                             n.tokens * n.width * n.width * (n.layers - n.mechanisms) +
                             workload.labels_per_step * n.width * answers);
  const double weights = static_cast<double>(weights_around(options, problem)) * n.bytes;
  Cost cost = layer;
  cost.model_flops = steps * (n.mechanisms * layer.model_flops + around);
  cost.executed_flops = steps * (n.mechanisms * layer.executed_flops + around);
  cost.exponentials = steps * n.mechanisms * layer.exponentials;
  // Weight, gradient and two means are read; all but the gradient are written.
  cost.minimal_bytes = steps * (n.mechanisms * layer.minimal_bytes + 7 * weights);
  cost.state_bytes = n.mechanisms * layer.state_bytes;
  return cost;
}

/// `layer_bytes`: the peak of one attention layer's forward and backward pass in the dtype of
/// products; `layer_weights`: its number of weights. `problem` has the dtype of weights.
double training_peak_bytes(double layer_bytes, double layer_weights, const ModelOptions& options,
                           const Problem& problem, const Workload& workload) {
  const ModelSizes n(options, problem);
  const double weights =
      static_cast<double>(weights_around(options, problem)) + n.mechanisms * layer_weights;
  const double stream = n.tokens * n.width * n.bytes;
  double block = 8 * stream + 2 * n.products * n.tokens * n.hidden * n.product_bytes;
  const double logits = workload.labels_per_step * static_cast<double>(outputs(options));
  double sum = 4 * weights * n.bytes + 4 * logits * n.bytes;
  if (n.product_bytes < n.bytes) {
    // Narrow copies of weights, logits and the inputs of a block's two halves.
    sum += (weights + logits) * n.product_bytes;
    block += 2 * stream / n.bytes * n.product_bytes;
  }
  return sum + n.mechanisms * layer_bytes + n.layers * block;
}

/// The forecast of a model all of whose blocks hold the cell's mechanism.
TaskForecast forecast_alone(const Registry& registry, const ResolvedCell& cell, const DataSet& data,
                            const ModelOptions& model) {
  const Problem problem = problem_of(cell.settings, data, model, longest(data));
  require_consistent(model, problem);
  TaskForecast forecast = forecast_training_mix(registry, cell, model, problem);
  forecast.once = true;
  if (!forecast.support) return forecast;
  forecast.support = mask_support(cell.mechanism, forecast.options, model, data.masks_between());
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
  // Steps have the length of training; longer segments are only tested.
  Problem step = problem_of(cell.settings, data, model, longest(data, Split::train));
  step.dtype = problem.dtype;
  call::CallSettings layer;
  layer.problem = step;
  layer.problem.dtype = mix_dtype(model, problem.dtype);
  layer.problem.device = cell.device;
  forecast.cost = chosen(registry, cell, forecast).cost(forecast.options, layer.problem);
  layer.pass = call::Pass::forward_backward;
  layer.scope = Scope::layer;
  call::add_call_cost(forecast, registry, cell, layer);
  const Workload workload = workload_of(cell.settings, data);
  forecast.peak_bytes = training_peak_bytes(
      forecast.peak_bytes, layer_weights(registry, cell, forecast, model.projection_bias), model,
      step, workload);
  forecast.cost = training_cost(forecast.cost, model, step, workload);
  return forecast;
}

}  // namespace

std::vector<Option> TrainingTask::settings() const {
  std::vector<Option> declared = training_size_settings();
  append(declared, model_settings());
  append(declared, trainer_settings());
  if (classifies()) {
    append(declared, classifier_settings());
    for (Option& one : declared) {
      if (one.name == "keep") one.fallback = std::string(to_string(Keep::best_validation));
    }
  }
  append(declared, data_settings());
  return declared;
}

std::vector<std::string> TrainingTask::figures() const {
  std::vector<std::string> names = {"accuracy",
                                    "accuracy_over_state",
                                    "accuracy_over_time",
                                    "accuracy_over_memory",
                                    "accuracy_over_learning_rate",
                                    "learning_curves"};
  // The answer of a classified example does not stand in it.
  if (!classifies()) names.push_back("accuracy_by_look_back");
  return names;
}

ModelOptions TrainingTask::model_options(const Options& settings) const {
  ModelOptions model = model_options_from(settings);
  fit(settings, model);
  return model;
}

ModelOptions TrainingTask::model_options(const Options& settings, const DataSet& data) const {
  ModelOptions model = model_options(settings);
  model.classifier.classes = data.classes();
  model.classifier.towers = data.towers();
  model.classifier.masks_between = !data.masks_between().empty();
  return model;
}

TaskForecast TrainingTask::forecast_on(const DataSet& data, const Registry& registry,
                                       const ResolvedCell& cell) const {
  const ModelOptions model = model_options(cell.settings, data);
  return forecast_stack(registry, cell, mechanism_blocks(model), [&](const ResolvedCell& one) {
    return forecast_alone(registry, one, data, model);
  });
}

TaskForecast TrainingTask::forecast(const Registry& registry, const ResolvedCell& cell) const {
  return forecast_on(*data_set(cell.settings, 0), registry, cell);
}

std::optional<TaskForecast> TrainingTask::forecast_without_data(const Registry& registry,
                                                                const ResolvedCell& cell) const {
  const std::unique_ptr<DataSet> data = outline(cell.settings);
  if (!data) return std::nullopt;
  return forecast_on(*data, registry, cell);
}

std::vector<Option> TrainingTask::Files::settings() const {
  std::vector<Option> declared = task_.data_settings();
  for (Option& one : trainer_settings()) {
    if (one.name == "data_seed") declared.push_back(std::move(one));
  }
  return declared;
}

Json TrainingTask::Files::write(const Options& settings, std::uint64_t seed,
                                const std::filesystem::path& folder) const {
  return write_jsonl(*task_.data_set(settings, seed), folder);
}

std::uint64_t data_seed(const Options& settings, std::uint64_t run_seed) {
  return key_of({run_seed, static_cast<std::uint64_t>(settings.integer("data_seed"))});
}

}  // namespace attnbench::tasks::training
