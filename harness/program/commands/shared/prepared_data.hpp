// Prepared data for `attnbench data`: made or read in this process, listed, shown
// and exported. No worker and no tensor is needed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/option.hpp"
#include "tasks/data/data_task.hpp"

namespace attnbench::commands {

struct PrepareRequest {
  const tasks::data::DataTask* task = nullptr;
  Options settings;  ///< of the task, defaults filled in
  std::string from;  ///< archive, folder or file; empty where rows are generated
  std::string out;   ///< folder
  bool raw = false;  ///< take what is no text, too
  int threads = 1;
  int show = 0;           ///< rows to show at the end
  std::string export_to;  ///< folder that the rows are written to besides; empty = none
  std::string form;       ///< of what is exported, as export_prepared takes it
};

/// What --as may say.
inline const std::vector<std::string> export_forms{"published", "arrays"};

/// Throws UsageFailure where the task has no such form; `form` is one of export_forms, or empty:
/// the published one where it is written, else arrays.
void expect_form(const tasks::data::DataTask& task, const std::string& form);

/// Writes what is prepared to the new or empty folder `to`, and prints its files. Throws
/// UsageFailure and EnvironmentFailure; no file is left then.
void export_prepared(const tasks::data::Cache& cache, const std::string& to,
                     const std::string& form);

/// Prints a line for each file that was exported to the folder `to`.
void print_exported(const std::string& to, const std::vector<tasks::data::ExportedFile>& files);

/// The one file of prepared data in `folder` with these settings. Throws UsageFailure where there
/// is none, with the command that prepares it, and where there are several, with how they differ.
std::shared_ptr<const tasks::data::Cache> prepared_cache(const std::string& folder,
                                                         const tasks::data::DataTask& task,
                                                         const OptionValues& settings);

/// Prepares a file in `out` and says on standard error how far it is. Returns the exit code, 130
/// where an interrupt ended it: the same request continues from there. Throws UsageFailure.
int prepare_data(const PrepareRequest& request);

/// Prints what is prepared in `folder`, and what is not with how to get it. `folder` may be empty:
/// none was given.
int list_prepared_data(const std::string& folder);

}  // namespace attnbench::commands
