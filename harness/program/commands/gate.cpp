// attnbench gate: counts that must not grow, against the file in the tree that holds them.
#include <cmath>
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "core/output_file.hpp"
#include "core/process/fingerprint.hpp"
#include "core/result/document.hpp"
#include "core/text/printable.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/suite_arguments.hpp"
#include "harness/program/counts/counts.hpp"
#include "harness/program/run/plan/planning.hpp"
#include "harness/program/suite/known_suites.hpp"

namespace attnbench::commands {
namespace {

struct GateArguments {
  std::string counts = "tests/benchmarks/counts.json";
  std::string suite = "ci_kernels";
  bool update = false;
  bool force = false;
};

/// The predicted workspace of each cell that runs, in bytes.
std::map<std::string, std::int64_t> predicted_workspaces(const std::string& name) {
  const suite::Document document = suite::load(suite::find_suite(name));
  const suite::Expanded expanded = suite::expand(document, run::load_catalogue({}), {});
  const std::vector<Forecast> forecasts = run::forecast(expanded.cells, {});
  std::map<std::string, std::int64_t> bytes;
  for (std::size_t i = 0; i < expanded.cells.size(); ++i) {
    const double workspace = forecasts[i].cost.workspace_bytes;
    if (!forecasts[i].problem || !std::isfinite(workspace)) continue;
    bytes[suite::describe(expanded.cells[i])] = std::llround(workspace);
  }
  return bytes;
}

/// Prints the findings; whether any of them fails.
bool report_findings(const std::vector<counts::CountChange>& findings, const std::string& unit) {
  bool failed = false;
  for (const counts::CountChange& finding : findings) {
    failed = failed || finding.fails();
    std::cout << (finding.fails() ? "FAILED  " : "fewer   ")
              << text::quotable(counts::finding_text(finding, unit), 400) << "\n";
  }
  return failed;
}

counts::Counts counted(const GateArguments& arguments) {
  counts::Counts now = counts::count_instructions(process::program_folder() / "attnbench-counts");
  const result::Provenance build = process::provenance("");
  now.compiler = build.compiler;
  now.flags = build.flags;
  now.workspace_bytes = predicted_workspaces(arguments.suite);
  return now;
}

/// Refuses to let --update replace a file that is no list of counts.
void expect_counts_or_nothing(const GateArguments& arguments) {
  const OutputFile file("--counts", arguments.counts, "gate", true);
  std::error_code ignored;
  if (arguments.force || !std::filesystem::is_regular_file(arguments.counts, ignored)) return;
  if (std::filesystem::file_size(arguments.counts, ignored) == 0) return;
  try {
    counts::read_counts(arguments.counts);
  } catch (const UsageFailure& failure) {
    throw UsageFailure(std::string(failure.what()) +
                       "; choose another file with --counts, or pass --force to replace it");
  }
}

int run_gate(const GateArguments& arguments) {
  if (arguments.update) {
    expect_counts_or_nothing(arguments);
    const counts::Counts now = counted(arguments);
    write_atomically(arguments.counts, counts::counts_text(now));
    std::cout << "written " << arguments.counts << ": " << now.instructions.size() << " calls ("
              << now.instruction_set << " alone was counted), " << now.workspace_bytes.size()
              << " workspaces\n";
    return 0;
  }
  const counts::Counts stored = counts::read_counts(arguments.counts);
  const counts::Counts now = counted(arguments);
  bool failed = false;
  const std::string why = counts::not_comparable(stored, now);
  if (why.empty()) {
    failed = report_findings(counts::findings_of(stored.instructions, now.instructions,
                                                 counts::instructions_repeat_within),
                             "instructions");
  } else {
    std::cout << "SKIPPED instructions are not comparable: " << text::quotable(why, 400) << "\n";
  }
  const auto workspaces = counts::findings_of(stored.workspace_bytes, now.workspace_bytes, 0);
  failed = report_findings(workspaces, "bytes of workspace") || failed;
  if (failed) {
    std::cout << "If that is meant: attnbench gate --update, and commit the counts.\n";
    return static_cast<int>(ExitCode::failed);
  }
  if (why.empty()) {
    std::cout << now.instructions.size() << " calls (" << now.instruction_set
              << " alone was counted) and " << now.workspace_bytes.size()
              << " workspaces: none grew\n";
  }
  return 0;
}

}  // namespace

void declare_gate(Command& command) {
  const auto arguments = std::make_shared<GateArguments>();
  command.option("--counts", arguments->counts, "the file of counts").shows_default();
  command.option("--suite", arguments->suite, "whose cells' predicted workspaces are held")
      .shows_default();
  command.flag("--update", arguments->update, "write the file anew");
  command.flag("--force", arguments->force, "with --update: replace a file that holds no counts");
  command.footer(
      "Instructions are those of torch-free kernels on one thread, counted by valgrind, which "
      "shows\n"
      "programs no AVX-512: only the AVX2 path is counted. Counts of another compiler or of other\n"
      "flags are not compared; the output says so, and it is not a failure. Unlike times, counts "
      "are\n"
      "the same on a busy machine.\n"
      "Exit codes: 0 nothing grew, 1 a count grew, came or went, 2 the file does not hold counts,\n"
      "3 valgrind or attnbench-counts is not here.");
  command.runs([arguments] { return run_gate(*arguments); });
}

}  // namespace attnbench::commands
