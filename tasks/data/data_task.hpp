// Tasks whose data are prepared before they train: settings, and sources of rows. `attnbench data`
// and the training tasks share them.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/option.hpp"
#include "tasks/data/export.hpp"
#include "tasks/data/wanted.hpp"

namespace attnbench::tasks::data {

/// What rows are known to be before they are prepared.
struct ExpectedRows {
  SplitCounts rows;    ///< of texts, their tokens
  int classes = 0;     ///< 0 where whole rows are not classified
  std::string source;  ///< who says these numbers: the settings, or a publication
};

struct DataTask {
  std::string name;   ///< "lra.listops"
  std::string title;  ///< for people
  /// The settings that determine the rows. data_seed is among them unless nothing is drawn.
  std::vector<Option> settings;
  int vocabulary = 0;  ///< ids of tokens are below it
  int towers = 1;
  bool padded = false;  ///< rows differ in length; 0 is padding
  /// How to get the published data, one sentence; empty where all is generated.
  std::string how_to_get;

  /// Names of the settings that matter beside these values, without the numbers of examples.
  std::function<std::vector<std::string>(const Options&)> decisive;
  /// What --from has to name for that value of the setting `source` (empty for its default), such
  /// as "aclImdb_v1.tar.gz"; empty where rows are generated.
  std::function<std::string(const std::string& source)> wants_from;
  /// Rows and classes by the settings, or as they were published; nothing where rows are whatever
  /// somebody brings.
  std::function<std::optional<ExpectedRows>(const Options&)> expected;
  /// Rows of these values, from `from` where that is not empty. Throws UsageError.
  std::function<std::unique_ptr<RowSource>(
      const Options& settings, const std::filesystem::path& from, const ProgressCall& progress)>
      open;
  /// Opens, as `open` does, a source that is no text, or an archive that is not unpacked (--raw);
  /// empty where rows are not texts.
  decltype(open) open_raw;
  /// Writes rows in the form they are published in; empty where that is not written.
  std::function<std::vector<ExportedFile>(const Cache&, const std::filesystem::path& folder)>
      export_published;
  std::string not_exported;  ///< why it is empty, for a message

  /// Whether that is the setting's default.
  bool is_default(const std::string& option, const Json& value) const;
  /// The declaration of a setting; null where there is none of that name.
  const Option* setting(const std::string& option) const;
};

/// The data tasks by name: those of tasks/data/lm and tasks/data/lra.
const std::vector<DataTask>& data_tasks();
/// The names of the data tasks for messages: "lm, lra.image, …".
std::string data_task_names();
/// The data task of that name; null where there is none.
const DataTask* find_data_task(const std::string& name);

/// The numbers of rows: train_examples, validation_examples and test_examples, where `settings`
/// have them; 0 = all.
SplitCounts counts_of(const Options& settings);

/// What a cell with these settings needs. `settings` hold those of the task, and may hold
/// train_examples, validation_examples and test_examples where the task itself has none.
Wanted wanted_of(const DataTask& task, const Options& settings);

/// Throws UsageError where published data are to be read, and --from does not say from where.
void expect_from(const DataTask& task, const std::string& source,
                 const std::filesystem::path& from);

}  // namespace attnbench::tasks::data
