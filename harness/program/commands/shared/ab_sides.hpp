// The sides of `attnbench ab`: from what the command line names to the cells that both measure.
#pragma once

#include <string>
#include <vector>

#include "harness/program/commands/shared/suite_arguments.hpp"
#include "harness/program/compare/sides.hpp"
#include "harness/program/suite/suite.hpp"

namespace attnbench::commands {

struct SideArguments {
  std::string base;  ///< a build's folder or worker, a plugin, or NAME/IMPLEMENTATION
  std::string changed;
  std::vector<std::string> base_set;  ///< NAME=VALUE, over the suite's
  std::vector<std::string> changed_set;

  bool any() const {
    return !base.empty() || !changed.empty() || !base_set.empty() || !changed_set.empty();
  }
};

/// A suite for both sides and what the run must remember of them. The gate is the suite's.
struct ExpandedSides {
  suite::Expanded suite;
  std::vector<std::string> plugins;
  compare::SidesPlan plan;
  std::vector<std::string> notes;  ///< sentences for the user
};

/// The sides that are two mechanisms or implementations, labelled by their names. Throws
/// UsageFailure.
ExpandedSides pair_sides(SuiteArguments& arguments);

/// The suites that the command line names, one or more; mechanisms, too, where the sides differ in
/// settings alone. Throws UsageFailure for anything else, and for a suite that is named twice.
std::vector<std::string> suites_of_sides(SuiteArguments& arguments, const SideArguments& sides);

/// The cells of a suite on two sides. Throws UsageFailure; EnvironmentFailure where a worker does
/// not start.
ExpandedSides suite_sides(const std::string& name, SuiteArguments& arguments,
                          const SideArguments& sides);

}  // namespace attnbench::commands
