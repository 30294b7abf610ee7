// What the commands that measure share: flags of a run, what they ask the supervisor for, and how a
// run ends for whoever started it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "harness/run/supervise/settings.hpp"

namespace CLI {
class App;
}

namespace attnbench::commands {

/// How long to wait for a quiet machine before the first cell that is timed.
struct WaitArguments {
  bool now = false;
  double seconds = 0;
  CLI::App* command = nullptr;

  /// Nothing where neither flag was given.
  std::optional<double> most_seconds() const;
};

/// Adds --now and --wait.
void add_wait_arguments(CLI::App& command, WaitArguments& arguments);

struct MeasureArguments {
  CLI::App* command = nullptr;
  std::string out;
  std::uint64_t seed = 0;
  int threads = 0;
  int rounds = 0;
  double cell_timeout = 0;
  std::string memory_limit;
  std::string progress = "auto";
  bool keep_blas_core = false;
  bool no_ceilings = false;
  WaitArguments wait;
  bool no_report = false;
  bool force = false;

  bool said(const char* flag) const;
};

/// Adds --out, --seed, --threads, --rounds, --cell-timeout, --memory-limit, --progress, --now,
/// --wait, --keep-blas-core, --no-ceilings, --no-report and --force.
void add_measure_arguments(CLI::App& command, MeasureArguments& arguments);

/// What they ask for; throws UsageFailure.
run::RunSettings settings_of(const MeasureArguments& arguments);

/// Throws UsageFailure where a new run in `folder` would replace files that attnbench did not
/// write, unless --force.
void expect_free(const std::filesystem::path& folder, const MeasureArguments& arguments);

/// Figures and page of a run; prints the page's path or, on standard error, why there is none.
void make_report(const std::filesystem::path& folder, const MeasureArguments& arguments);

/// How to go on with a run that was interrupted, on standard error.
void tell_of_interruption(const run::RunOutcome& outcome);

}  // namespace attnbench::commands
