#include "harness/program/commands/shared/restore_settings.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "core/failure.hpp"
#include "core/text/printable.hpp"
#include "harness/program/run/folder/journal.hpp"
#include "harness/program/run/folder/run_folder.hpp"
#include "harness/program/run/plan/planning.hpp"
#include "harness/program/suite/overrides.hpp"
#include "harness/program/suite/profile.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

/// Checks cells of a journal. Their ids become names of files in the run's folder.
void expect_cells(const std::vector<Cell>& cells) {
  std::set<std::string> ids;
  for (const Cell& cell : cells) {
    const bool plain = std::all_of(cell.id.begin(), cell.id.end(), [](char letter) {
      return std::isalnum(static_cast<unsigned char>(letter)) || letter == '-' || letter == '_';
    });
    if (!plain || cell.id.empty() || cell.id.size() > 100) {
      throw UsageFailure("the id \"" + text::quotable(cell.id) + "\" of a cell");
    }
    if (!ids.insert(cell.id).second) throw UsageFailure("the cell " + cell.id + " twice");
    const std::string complaint = suite::device_complaint(cell.device);
    if (!complaint.empty()) throw UsageFailure("the cell " + cell.id + ": " + complaint);
  }
}

void recall_from(const run::JournalHeader& header, const Command& command,
                 run::RunSettings& settings) {
  const std::vector<std::string> flags = command.flags();
  const auto keep = [&](const std::string& flag) {
    const bool declared = std::find(flags.begin(), flags.end(), flag) != flags.end();
    return declared && command.given("--" + flag);
  };
  if (!keep("seed")) settings.seed = header.seed.value_or(settings.seed);
  if (!keep("threads")) settings.threads = header.threads.value_or(settings.threads);
  if (!keep("jobs")) settings.jobs = header.jobs.value_or(settings.jobs);
  if (!keep("rounds") && header.rounds) settings.rounds = header.rounds;
  if (!keep("rounds") && !settings.budget_seconds) settings.budget_seconds = header.budget_seconds;
  if (!keep("plugin")) settings.plugins = header.plugins.value_or(std::vector<std::string>{});
  settings.reproduce = header.reproduce;
  settings.suite.header = header.suite;
  static_cast<void>(run::Json(header.suite).get<result::SuiteInfo>());  // while the file is known
  settings.suite.cells = run::cells_from(header.cells);
  settings.suite.measure = header.measure;
  expect_cells(settings.suite.cells);
  for (const auto& [key, value] : header.measure) {
    const bool known = value.is_number() && suite::default_measure().contains(key);
    if (!known) throw UsageFailure("\"" + text::quotable(key) + "\" of measure");
  }
}

/// Which command's run it is.
std::string verb_of(const run::JournalHeader& header) {
  return header.suite.contains("ab") ? "ab" : "run";
}

}  // namespace

void restore_settings(run::RunSettings& settings, const std::string& verb, const Command& command) {
  const fs::path journal = run::find_run_folder(settings.resume).journal();
  const run::Json json = run::read_journal(journal).header;
  std::string why;
  std::string other;
  try {
    const auto header = json.get<run::JournalHeader>();
    other = verb_of(header);
    if (other == verb) return recall_from(header, command, settings);
  } catch (const SchemaError& error) {
    why = error.what();
  } catch (const UsageFailure& failure) {
    why = failure.what();
  }
  if (why.empty()) {
    throw UsageFailure("it is a run of `attnbench " + other + "`; continue with: attnbench " +
                       other + " --resume " + settings.resume.string());
  }
  throw UsageFailure(text::quotable(journal.string()) + ":1: not the header of a run (" + why +
                     "); start a new run");
}

}  // namespace attnbench::commands
