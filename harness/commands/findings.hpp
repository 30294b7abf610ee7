// Findings of `check` as files, and of `doctor` as text.
#pragma once

#include <iosfwd>
#include <nlohmann/json.hpp>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "harness/suite/catalogue.hpp"

namespace attnbench::commands {

/// Files of `check --out`, as Markdown or JSON: by `format` ("markdown", "json") or, where that is
/// empty, by the file's ending (.md, .json). `validate` throws UsageFailure for another ending, for
/// a folder that does not exist, and for a file that `check` did not write.
struct CheckReports {
  std::vector<std::string> files;
  std::string format;
  bool force = false;  ///< replace other programs' files, too

  void validate() const;
  void write(const nlohmann::json& document) const;
};

/// The facts of a report beside its findings: {command, date, build, stamp, machine, mechanisms}.
/// `names` are mechanisms or aliases; empty = all. The machine includes the card of `device`.
nlohmann::json check_facts(const suite::Catalogue& catalogue, const std::vector<std::string>& names,
                           const std::vector<std::string>& plugins, const std::string& device);

/// Prints the findings of `doctor`:
/// {machine: card with spoilers, worker: {works, reason?, start_seconds, stamp, plugins},
///  devices: {WORD: {card, condition} | {refusal}}, ceilings?: {WORD: {…} | {refusal}}, noise?,
///  places: {NAME: PATH}}.
void print_doctor(std::ostream& out, const nlohmann::json& found);

}  // namespace attnbench::commands
