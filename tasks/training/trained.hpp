// Models that a training left behind in its checkpoints.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>

#include "tasks/training/model.hpp"
#include "tasks/training/task.hpp"

namespace attnbench::tasks::training {

/// The model of a cell before its training; `options` as TrainingTask::model_options makes them
/// with the data. `run_seed` is that of the whole run.
std::shared_ptr<Model> untrained_model(const Registry& registry, const ResolvedCell& cell,
                                       const TaskForecast& forecast, const ModelOptions& options,
                                       std::uint64_t run_seed);

/// What a checkpoint's weights belong to: task, mechanism, implementation, settings, options, and
/// the weights' names and shapes.
Json model_identity(const TrainingTask& task, const ResolvedCell& cell,
                    const TaskForecast& forecast, const Model& model);

struct TrainedModel {
  std::shared_ptr<Model> model;
  std::string implementation;
  std::int64_t step = 0;  ///< step after which the weights were saved
};

/// The model of the cell with the weights that its training scores or, where it was interrupted,
/// the last that it saved. `folder` is that of the cell's checkpoints, `binary` the fingerprint of
/// this worker and its plugins. Throws UsageError, naming the file, where there is no checkpoint,
/// or none of this cell, binary and prepared data; UnsupportedError where the cell cannot run.
TrainedModel trained_model(const TrainingTask& task, const Registry& registry,
                           const ResolvedCell& cell, const std::filesystem::path& folder,
                           const std::string& binary, std::uint64_t run_seed);

/// Throws UsageError, naming the cell and what is different, unless it trains a model that predicts
/// each next one of 256 symbols.
void require_byte_model(const Task& task, const ResolvedCell& cell);

}  // namespace attnbench::tasks::training
