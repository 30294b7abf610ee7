// Mechanisms in Python as the worker has them: what they declare is asked of Python in a child,
// once, and remembered until a file on which it depends changes. The worker itself never starts
// Python: PythonHost does.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attention/python/description.hpp"
#include "core/result/record.hpp"
#include "harness/worker/status.hpp"

namespace attnbench::worker {

/// What a word names, and what it declares where that could be had.
struct PythonPlugin {
  std::string word;
  std::string mechanism;
  python::Description description;
  Outcome outcome;  ///< ok, or why it cannot be used
};
void to_json(nlohmann::json& json, const PythonPlugin& plugin);
void from_json(const nlohmann::json& json, PythonPlugin& plugin);

/// The plugins among `words` that are in Python, in order, where the declarations of all of them
/// are remembered and no file of theirs has changed; else nothing.
std::optional<std::vector<PythonPlugin>> remembered_plugins(const std::vector<std::string>& words);

/// The plugins among `words` that are in Python, in order. Words whose declarations are not
/// remembered, or whose files have changed, are asked in a child for each file; where that one
/// crashes, or does not come back within `limit_seconds`, the word that it was at is to blame, and
/// another child asks for the rest. `on_step` is told the word that each child begins with.
std::vector<PythonPlugin> python_plugins(const std::vector<std::string>& words,
                                         double limit_seconds,
                                         const std::function<void(const std::string&)>& on_step);

/// A note on a reference in Python that takes longer than the samples of the call that it is to
/// check; empty where there is nothing to say.
std::string note_on_reference(const python::Description& description, double check_seconds,
                              double sampled_seconds);

/// The record's section on Python for a cell in this process: versions, the hash of its file, what
/// a call costs beside it, and notes (docs/python.md). Null where Python was not started.
/// `check_seconds` is 0 in rounds without a check.
nlohmann::json python_section(const PythonPlugin& plugin,
                              const std::map<std::string, result::TimingRound>& timing,
                              double check_seconds);

}  // namespace attnbench::worker
