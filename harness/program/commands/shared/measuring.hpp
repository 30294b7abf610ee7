// What commands that measure share: flags of a run, the command that repeats it, and its end.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "harness/program/commands/shared/command.hpp"
#include "harness/program/run/supervise/settings.hpp"
#include "reports/verdict/verdict.hpp"

namespace attnbench::commands {

/// How long to wait for a quiet machine before the first timed cell.
struct WaitArguments {
  bool now = false;
  double seconds = 0;
  const Command* command = nullptr;

  /// The longest time to wait; nothing where neither flag was given.
  std::optional<double> max_seconds() const;
};

/// Adds --now and --wait.
void add_wait_arguments(Command& command, WaitArguments& arguments);

struct MeasureArguments {
  const Command* command = nullptr;
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

  bool given(const char* flag) const;
};

/// Adds --out, --seed, --threads, --rounds, --cell-timeout, --memory-limit, --progress, --now,
/// --wait, --keep-blas-core, --no-ceilings, --no-report and --force.
void add_measure_arguments(Command& command, MeasureArguments& arguments);

/// The settings of a run from these arguments; throws UsageFailure.
run::RunSettings settings_of(const MeasureArguments& arguments);

/// Throws UsageFailure where, without --force, a new run in `folder` would replace files that
/// attnbench did not write.
void expect_free(const std::filesystem::path& folder, const MeasureArguments& arguments);

/// Draws figures and page of a run; prints the page's path or, on standard error, why there is
/// none.
void make_report(const std::filesystem::path& folder, const MeasureArguments& arguments);

/// Prints the table of a result, as wide as the terminal, and how many cells ended how.
void print_tables(const result::Result& document);

/// Prints what is to be seen of the cells where the verdict follows: those that are not ok; all
/// tables where the verdict has none, and of trainings, whose learning rates and baselines no
/// verdict has.
void print_cells(const result::Result& document, const reports::verdict::Verdict& verdict);

/// Prints the verdict of a result, if it has one.
void print_verdict(const reports::verdict::Verdict& verdict);
/// Draws the first of its tables, where standard output is a terminal that can show it.
void print_plot(const reports::verdict::Verdict& verdict);

/// Prints how to resume an interrupted run, on standard error.
void print_interruption(const run::RunOutcome& outcome);

/// The command line of this process, quoted for a shell.
std::string typed_command();

/// The command line of this process without flags that choose cells, folders or output, and without
/// suites other than `suite`. With --only ID it repeats one cell.
std::string reproducing_command(const std::string& suite);
/// The reproducing command for the words of any command line.
std::string reproducing_command(const std::vector<std::string>& words, const std::string& suite);

/// The words of `flag` as statuses; throws UsageFailure for an unknown one.
std::set<std::string> statuses_from(const std::string& flag, const std::vector<std::string>& words);

}  // namespace attnbench::commands
