// Entries of a suite: its tasks and mechanisms, their names looked up in the catalogue.
#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/catalogue.hpp"
#include "harness/program/suite/document.hpp"
#include "harness/program/suite/profile.hpp"

namespace attnbench::suite {

/// A task of a suite. Points into the catalogue.
struct TaskEntry {
  std::string label;
  const TaskSpec* spec = nullptr;
  std::string pointer;               ///< "/tasks/LABEL", or empty for a suite's only task
  nlohmann::ordered_json overrides;  ///< the task's own object, {} for a suite's only task
};

/// A mechanism of a suite. Points into the catalogue.
struct MechanismEntry {
  std::string label;
  const MechanismSpec* mechanism = nullptr;
  const Alias* alias = nullptr;  ///< where `use` names an alias
  std::string implementation;    ///< of the alias, or after the "/" of "latte/scan"; else "auto"
  std::string pointer;           ///< "/mechanisms/LABEL"
  nlohmann::ordered_json overrides;  ///< what the entry overrides
};

/// The suite's tasks in order, or those of --set task=….
/// Both functions add unknown names to `problems`.
std::vector<TaskEntry> read_tasks(const ProfiledSuite& suite, const Catalogue& catalogue,
                                  const std::vector<SetFlag>& flags, Problems& problems);

std::vector<MechanismEntry> read_mechanisms(const ProfiledSuite& suite, const Catalogue& catalogue,
                                            Problems& problems);

/// Whether the task runs that mechanism: a task may list the labels that it runs.
bool applies_to(const TaskEntry& task, const MechanismEntry& entry);

/// Throws UsageFailure for torchscript:FILE and FILE.pt, which were mechanisms once: it says what
/// took their place.
void refuse_torchscript(const std::string& word);

/// Whether a name is a mechanism's that is there in any case, or an alias of one.
using IsBuiltin = std::function<bool(const std::string& name)>;

/// Appends to `plugins` what the worker loads for a mechanism written in Python, NAME=WORD, and
/// returns NAME. Returns any other `word` as it is.
///   python:FILE.py:NAME            WORD has the absolute path of FILE.py, which is looked for in
///                                  `folder`, then in the working folder
///   python:PACKAGE.MODULE:NAME     WORD is the word itself
///   mine=python:…                  NAME is mine
/// NAME is else run::mechanism_of, or a longer one where that is another's in `plugins` or built
/// in: a word never names what another word does. Throws UsageFailure where there is no such file,
/// the word is incomplete or the name that it gives is taken, and what refuse_torchscript throws.
std::string resolve_script(const std::string& word, const std::filesystem::path& folder,
                           std::vector<std::string>& plugins, const IsBuiltin& is_builtin);

/// Resolves, as resolve_script does, all mechanisms of a suite and its profiles, relative to the
/// suite's folder, where `"as": "mine"` gives the name, too. Labels stay as they are.
void resolve_scripts(Document& document, std::vector<std::string>& plugins,
                     const IsBuiltin& is_builtin);

}  // namespace attnbench::suite
