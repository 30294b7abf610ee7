#include "tasks/training/trained.hpp"

#include <nlohmann/json.hpp>

#include "core/random.hpp"
#include "tasks/forecast.hpp"
#include "tasks/training/checkpoint.hpp"
#include "tasks/training/trainer_options.hpp"
#include "tasks/training/training_state.hpp"

namespace attnbench::tasks::training {
namespace {

constexpr std::int64_t kBytes = 256;

/// Why the cell's model does not predict the next byte; empty where it does.
std::string no_byte_model(const Task& task, const ResolvedCell& cell) {
  const auto* const training = dynamic_cast<const TrainingTask*>(&task);
  if (training == nullptr) return "it trains no model";
  if (training->classifies()) return "its model classifies whole sequences";
  const ModelOptions model = training->model_options(cell.settings);
  if (model.decoder || model.tokens_per_position != 1) return "its tokens share positions";
  if (cell.settings.has("tokens") && cell.settings.text("tokens") != "bytes") {
    return "its tokens are " + cell.settings.text("tokens");
  }
  if (model.vocabulary == kBytes) return {};
  return "its vocabulary is " + std::to_string(model.vocabulary);
}

/// Where the checkpoint is whose weights are scored.
std::filesystem::path file_of(const Checkpoints& checkpoints, const ResolvedCell& cell) {
  const bool best = cell.settings.text("keep") == to_string(Keep::best_validation);
  if (best && std::filesystem::exists(checkpoints.best())) return checkpoints.best();
  for (const std::filesystem::path& file : {checkpoints.newest(), checkpoints.previous()}) {
    if (std::filesystem::exists(file)) return file;
  }
  throw UsageError("no checkpoint of the cell " + cell.id + " in " +
                   checkpoints.newest().parent_path().string() +
                   ": train it with --keep-checkpoints");
}

}  // namespace

std::shared_ptr<Model> untrained_model(const Registry& registry, const ResolvedCell& cell,
                                       const TaskForecast& forecast, const ModelOptions& options,
                                       std::uint64_t run_seed) {
  const std::uint64_t seed =
      key_of({run_seed, static_cast<std::uint64_t>(cell.settings.integer("model_seed"))});
  return std::make_shared<Model>(mixers(registry, cell, forecast), options, seed);
}

Json model_identity(const TrainingTask& task, const ResolvedCell& cell,
                    const TaskForecast& forecast, const Model& model) {
  Json settings = Json::object();
  for (const auto& [name, value] : cell.settings.values()) {
    if (name != "checkpoint_seconds") settings[name] = to_string(value);
  }
  Json options = Json::object();
  for (const auto& [name, value] : forecast.options.values()) options[name] = to_string(value);
  Json weights = Json::object();
  for (const auto& item : model.named_parameters()) {
    weights[item.key()] = item.value().sizes().vec();
  }
  return {{"task", task.name()},
          {"mechanism", cell.mechanism},
          {"implementation", forecast.implementation},
          {"settings", std::move(settings)},
          {"options", std::move(options)},
          {"weights", std::move(weights)}};
}

TrainedModel trained_model(const TrainingTask& task, const Registry& registry,
                           const ResolvedCell& cell, const std::filesystem::path& folder,
                           const std::string& binary, std::uint64_t run_seed) {
  const std::filesystem::path file = file_of(Checkpoints(folder, Json::object()), cell);
  const TaskForecast forecast = supported_forecast(task, registry, cell);
  const std::unique_ptr<DataSet> data = task.data_set(cell.settings, run_seed);
  TrainedModel trained;
  trained.implementation = forecast.implementation;
  trained.model =
      untrained_model(registry, cell, forecast, task.model_options(cell.settings, *data), run_seed);
  Json identity = model_identity(task, cell, forecast, *trained.model);
  identity["binary"] = binary;
  identity["data"] = data->content_hash();
  try {
    const Checkpoint checkpoint = read_checkpoint(file, identity);
    set_weights(saved_weights(checkpoint), *trained.model);
    trained.step = checkpoint.facts.value("step", std::int64_t{0});
  } catch (const Error& error) {
    throw UsageError(file.string() + " " + error.what() + "; train the cell again");
  }
  return trained;
}

void require_byte_model(const Task& task, const ResolvedCell& cell) {
  const std::string why = no_byte_model(task, cell);
  if (why.empty()) return;
  throw UsageError("the cell " + cell.id + " of the task " + task.name() +
                   " is not a model of bytes: " + why +
                   "; choose one that learns to predict each next one of 256 symbols, as the task "
                   "lm does");
}

}  // namespace attnbench::tasks::training
