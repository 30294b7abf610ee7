// Cell: one point of a suite, with every size worked out. The suite's expansion makes it; the
// journal, the protocol and the result carry it.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/option_json.hpp"

namespace attnbench {

using OptionValues = std::map<std::string, OptionValue>;

/// Each value as value_from of core/option_json.hpp reads it; `where` is the object's name.
OptionValues option_values_from(const nlohmann::json& object, const std::string& where);
nlohmann::json to_json(const OptionValues& values);
nlohmann::json to_json(const Options& options);

namespace run {

struct Cell {
  std::string id;     ///< unique in its run, and the name of its files
  std::string label;  ///< of its suite entry
  std::string task;
  std::string task_label;  ///< the suite's name for the task
  std::string mechanism;
  std::string implementation = "auto";
  std::string device = "cpu";
  OptionValues options;   ///< of the mechanism: those that were set, sizes evaluated
  OptionValues settings;  ///< of the task: all of them
  /// Settings and options that differ between the suite's cells; absent in cells of no suite.
  std::optional<std::vector<std::string>> varies = {};

  bool on_cpu() const { return device == "cpu"; }
};

void to_json(nlohmann::json& json, const Cell& cell);
/// Throws UsageError. Only `varies` may be missing.
void from_json(const nlohmann::json& json, Cell& cell);

}  // namespace run
}  // namespace attnbench
