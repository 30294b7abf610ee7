// TrainingTask: what all tasks that train have in common. A task of its own says what its data are;
// settings, forecast, training, record and dump are here.
#pragma once

#include <memory>

#include "tasks/training/data.hpp"
#include "tasks/training/model_options.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks::learning {

class TrainingTask : public Task {
 public:
  TrainingTask() : files_(*this) {}

  // ---- what a task says

  /// Settings that decide the data, besides data_seed. "vocabulary" and "length" are among them.
  virtual std::vector<Option> data_settings() const = 0;
  /// The data of `settings`, which hold those and data_seed. `run_seed` is that of the whole run.
  /// Throws UsageError where they cannot be made.
  virtual std::unique_ptr<DataSet> data_set(const Options& settings,
                                            std::uint64_t run_seed) const = 0;
  /// What the data ask of a model whose other choices are made.
  virtual void fit(const Options& settings, ModelOptions& model) const {
    static_cast<void>(settings);
    static_cast<void>(model);
  }
  /// What the record says of the data besides their sizes, as in core/result/record.hpp: levels
  /// that accuracy is to be held against (chance, guess, reach), and what was derived. `data` is
  /// what data_set returned, `state` what the model carries after the longest length.
  virtual Json facts(const Cell& cell, const Forecast& forecast, const DataSet& data,
                     const StateBytes& state) const = 0;

  // ---- what follows from it

  std::vector<Option> settings() const override;
  std::vector<std::string> figures() const override;
  std::vector<std::string> further_figures() const override { return {"loss_curves"}; }
  std::string axis() const override { return "length"; }
  Forecast forecast(const Registry& registry, const Cell& cell) const override;
  std::unique_ptr<Work> make(const Registry& registry, const Cell& cell) const override;
  const TaskData* data() const override { return &files_; }
  ModelOptions model_options(const Options& settings) const;

 private:
  /// The data as files.
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

}  // namespace attnbench::tasks::learning
