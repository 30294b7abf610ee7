// Prepared data for `attnbench data`: made or read in this process, listed, and
// shown. No worker and no tensor is needed.
#pragma once

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
  int show = 0;  ///< rows to show at the end
};

/// Prepares a file in `out` and says on standard error how far it is. Returns the exit code, 130
/// where an interrupt ended it: the same request continues from there. Throws UsageFailure.
int prepare_data(const PrepareRequest& request);

/// Prints what is prepared in `folder`, and what is not with how to get it. `folder` may be empty:
/// none was given.
int list_prepared_data(const std::string& folder);

}  // namespace attnbench::commands
