// Findings of `check` as files, and of `doctor` as text.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "harness/suite/catalogue.hpp"

namespace attnbench::commands {

/// Files to write, each as Markdown or JSON: as `format` says ("markdown", "json") or, where that
/// is empty, as the file's ending does (.md, .json). `validate` throws UsageFailure for one that
/// tells neither, that is in a folder which is not there, or would replace a file that `check` did
/// not write.
struct CheckReports {
  std::vector<std::string> files;
  std::string format;
  bool force = false;  ///< replace files of others, too

  void validate() const;
  void write(const nlohmann::json& document) const;
};

/// What a report says beside its findings: {command, date, build, stamp, machine, mechanisms}, the
/// last being those of `names`, which may be aliases; empty = all. The machine holds the card of
/// `device`, which can be used, where it has one.
nlohmann::json check_facts(const suite::Catalogue& catalogue, const std::vector<std::string>& names,
                           const std::vector<std::string>& plugins, const std::string& device);

/// Prints all of `found`:
/// {machine: card with spoilers, worker: {works, reason?, start_seconds, stamp, plugins},
///  devices: {WORD: {card, condition} | {refusal}}, ceilings?: {WORD: {…} | {refusal}}, noise?,
///  places: {NAME: PATH}}.
void print_doctor(std::ostream& out, const nlohmann::json& found);

}  // namespace attnbench::commands
