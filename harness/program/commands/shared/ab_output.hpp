// What `attnbench ab` leaves for pull requests and CI, and says of cells that became slower.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/output_file.hpp"
#include "harness/program/compare/publish.hpp"
#include "harness/program/compare/sides.hpp"
#include "harness/program/run/supervise/settings.hpp"

namespace attnbench::commands {

/// The output files that were asked for.
struct AbFiles {
  std::optional<OutputFile> markdown;
  std::optional<OutputFile> junit;
};

/// The part of the files on one suite.
compare::PublishedComparison published_ab(const run::RunOutcome& outcome,
                                          const compare::SidesPlan& plan,
                                          const compare::Comparison& comparison);

/// Throws EnvironmentFailure where a file cannot be written.
void publish_ab(const AbFiles& files, const std::vector<compare::PublishedComparison>& all);

/// A line for each cell that is SLOW: its ratio, and how to run it alone. `reproduce` is the
/// command of the run without what chooses cells.
void print_slow(const compare::Comparison& comparison, const std::string& reproduce);

}  // namespace attnbench::commands
