// TrainingTask: the part that all training tasks share. A task declares its data; settings,
// forecast, training, record and data files are here.
#pragma once

#include <memory>

#include "core/result/training.hpp"
#include "tasks/task.hpp"
#include "tasks/training/data.hpp"
#include "tasks/training/model_options.hpp"

namespace attnbench::tasks::training {

class Model;

class TrainingTask : public Task {
 public:
  TrainingTask() : files_(*this) {}

  // ---- declared by each task

  /// Settings that determine the data, except data_seed. "vocabulary" and "length" are among them.
  virtual std::vector<Option> data_settings() const = 0;
  /// The data of `settings`, which hold those and data_seed. `run_seed` is that of the whole run.
  /// Throws UsageError where they cannot be made.
  virtual std::unique_ptr<DataSet> data_set(const Options& settings,
                                            std::uint64_t run_seed) const = 0;
  /// The sizes that data_set of these settings would have, where the data are to be prepared first;
  /// it has no batches. Null where neither settings nor what is published say them.
  virtual std::unique_ptr<DataSet> outline(const Options& settings) const {
    static_cast<void>(settings);
    return nullptr;
  }
  /// Whether whole examples are classified: then there are the settings of a classifier, and the
  /// weights of the best validation are scored by default.
  virtual bool classifies() const { return false; }
  /// Sets model options that follow from the data's settings; classes, towers and masks are the
  /// data set's.
  virtual void fit(const Options& settings, ModelOptions& model) const {
    static_cast<void>(settings);
    static_cast<void>(model);
  }
  /// Adds what the record holds of the data besides their sizes: levels to compare the accuracy
  /// with (chance, guess, reach), and derived values. `data` is the result of data_set, `state` the
  /// model's state after the longest length.
  virtual void add_facts(const ResolvedCell& cell, const TaskForecast& forecast,
                         const DataSet& data, const StateBytes& state,
                         result::Training& record) const = 0;
  /// Adds what the record holds of the trained model besides its scores.
  virtual void add_findings(const ResolvedCell& cell, const DataSet& data, Model& model,
                            result::Training& record) const {
    static_cast<void>(cell);
    static_cast<void>(data);
    static_cast<void>(model);
    static_cast<void>(record);
  }

  // ---- derived

  std::vector<Option> settings() const override;
  std::vector<std::string> figures() const override;
  std::vector<std::string> further_figures() const override { return {"loss_curves"}; }
  std::string axis() const override { return "length"; }
  TaskForecast forecast(const Registry& registry, const ResolvedCell& cell) const override;
  std::optional<TaskForecast> forecast_without_data(const Registry& registry,
                                                    const ResolvedCell& cell) const override;
  std::unique_ptr<Work> make(const Registry& registry, const ResolvedCell& cell) const override;
  const TaskData* data() const override { return &files_; }
  ModelOptions model_options(const Options& settings) const;
  /// The model options with the classes, towers and masks of `data`.
  ModelOptions model_options(const Options& settings, const DataSet& data) const;

 private:
  TaskForecast forecast_on(const DataSet& data, const Registry& registry,
                           const ResolvedCell& cell) const;

  class Files final : public TaskData {
   public:
    explicit Files(const TrainingTask& task) : task_(task) {}
    std::vector<Option> settings() const override;
    Json write(const Options& settings, std::uint64_t seed,
               const std::filesystem::path& folder) const override;

   private:
    const TrainingTask& task_;
  };

  Files files_;
};

/// The seed of the data: that of the run and the setting data_seed.
std::uint64_t data_seed(const Options& settings, std::uint64_t run_seed);

}  // namespace attnbench::tasks::training
