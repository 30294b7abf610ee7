#include "harness/program/commands/shared/ab_output.hpp"

#include <filesystem>
#include <iostream>

#include "core/result/document.hpp"
#include "core/text/format.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

/// A sentence on the gate that was used.
std::string gate_words(const compare::Gate& gate) {
  std::string text = "a change counts from " + text::human_value(gate.relative_change * 100) + " %";
  if (gate.absolute_seconds > 0) {
    text += " and " + text::human_seconds(gate.absolute_seconds);
  }
  text += " on; looks after";
  for (const int rounds : compare::looks(gate)) text += " " + std::to_string(rounds);
  text += " rounds, confidence " + text::human_value(gate.confidence * 100) + " % of all verdicts";
  if (gate.confirm > 0)
    text += ", " + std::to_string(gate.confirm) + " rounds confirm what is SLOW";
  return text;
}

/// "old/build, commit 1a2b3c (changed)".
std::string side_words(const compare::SidesPlan& plan, std::size_t side) {
  std::string text = side == 0 ? "base: " + plan.base : "new: " + plan.changed;
  if (plan.builds.size() < 2 || plan.builds[side].worker.empty()) return text;
  const std::string commit = process::commit_in(fs::path(plan.builds[side].worker).parent_path());
  return commit.empty() ? text : text + ", commit " + commit;
}

/// The command that repeats one cell.
std::string alone(const std::string& reproduce, const compare::Pair& pair) {
  return reproduce + " --only " + pair.id.substr(0, pair.id.rfind('-'));
}

}  // namespace

compare::PublishedComparison published_ab(const run::RunOutcome& outcome,
                                          const compare::SidesPlan& plan,
                                          const compare::Comparison& comparison) {
  compare::Publication publication;
  publication.title = "ab " + (plan.suite.empty() ? plan.base + " " + plan.changed
                                                  : fs::path(plan.suite).stem().string());
  publication.basis = compare::basis_of(outcome.result);
  publication.details = {side_words(plan, 0), side_words(plan, 1), gate_words(plan.gate)};
  if (outcome.interrupted) publication.details.push_back("the run was interrupted");
  publication.command = outcome.result.run.command;
  return {comparison, publication};
}

void publish_ab(const AbFiles& files, const std::vector<compare::PublishedComparison>& all) {
  if (files.markdown) files.markdown->write(compare::to_markdown(all));
  if (files.junit) files.junit->write(compare::to_junit(all));
}

void print_slow(const compare::Comparison& comparison, const std::string& reproduce) {
  for (const compare::Pair& pair : comparison.pairs) {
    if (pair.verdict != compare::SpeedVerdict::slow) continue;
    std::cout << "slow    " << pair.name << ", "
              << compare::ratio_text(pair.ratio, pair.ratio_low, pair.ratio_high)
              << "; alone: " << alone(reproduce, pair) << "\n";
  }
}

}  // namespace attnbench::commands
