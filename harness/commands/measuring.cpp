#include "harness/commands/measuring.hpp"

#include <CLI/CLI.hpp>
#include <iostream>

#include "harness/commands/command_line.hpp"
#include "core/manifest.hpp"
#include "core/text/printable.hpp"
#include "harness/run/folder/run_folder.hpp"
#include "reports/report.hpp"

namespace attnbench::commands {

bool MeasureArguments::said(const char* flag) const { return command->count(flag) > 0; }

std::optional<double> WaitArguments::most_seconds() const {
  if (now) return 0;
  if (command == nullptr || command->count("--wait") == 0) return std::nullopt;
  return seconds;
}

void add_wait_arguments(CLI::App& command, WaitArguments& arguments) {
  arguments.command = &command;
  CLI::Option* now = command.add_flag(
      "--now", arguments.now,
      "Begin at once on a busy machine (on a terminal, what is timed waits for quiet)");
  command
      .add_option("--wait", arguments.seconds,
                  "Seconds to wait for quiet at most, on a terminal or not, then begin (0: none)")
      ->check(CLI::Range(0.0, 1e9))
      ->excludes(now);
}

void add_measure_arguments(CLI::App& command, MeasureArguments& arguments) {
  arguments.command = &command;
  command.add_option("--out", arguments.out, "Folder of the run (default: runs/NAME-TIME)");
  command.add_option("--seed", arguments.seed, "Seed of the inputs (default 0)");
  command.add_option("--threads", arguments.threads, "Threads of a cell (default: all cores)")
      ->check(CLI::Range(1, 4096));
  command
      .add_option("--rounds", arguments.rounds, "Fresh processes per cell (default: the suite's)")
      ->check(CLI::Range(1, 1000));
  command.add_option("--cell-timeout", arguments.cell_timeout, "Seconds for one round of a cell")
      ->check(CLI::PositiveNumber);
  command.add_option("--memory-limit", arguments.memory_limit,
                     "Of a cell's tensors, such as 20G (default: 80 % of what is available)");
  command.add_option("--progress", arguments.progress, "auto, plain or json");
  add_wait_arguments(command, arguments.wait);
  command.add_flag(
      "--keep-blas-core", arguments.keep_blas_core,
      "Use the OPENBLAS_CORETYPE of the environment, and the BLAS of LD_LIBRARY_PATH, in "
      "place of what is fastest here");
  command.add_flag("--no-ceilings", arguments.no_ceilings,
                   "Do not measure what the machine can do: no shares of the roofline");
  command.add_flag("--no-report", arguments.no_report, "No figures and no page at the end");
  command.add_flag("--force", arguments.force,
                   "Replace files in --out that attnbench did not write");
}

run::RunSettings settings_of(const MeasureArguments& arguments) {
  run::RunSettings settings;
  settings.command = typed_command();
  settings.seed = arguments.seed;
  settings.threads = arguments.threads;
  if (arguments.said("--rounds")) settings.rounds = arguments.rounds;
  if (arguments.said("--cell-timeout")) settings.cell_timeout_seconds = arguments.cell_timeout;
  if (!arguments.memory_limit.empty()) {
    settings.memory_limit_bytes = run::parse_bytes(arguments.memory_limit);
  }
  settings.wait_seconds = arguments.wait.most_seconds();
  settings.keep_blas_core = arguments.keep_blas_core;
  settings.ceilings = !arguments.no_ceilings;
  settings.progress = run::progress_style_from(arguments.progress);
  return settings;
}

void expect_free(const std::filesystem::path& folder, const MeasureArguments& arguments) {
  std::error_code ignored;
  if (arguments.force || folder.empty() || !std::filesystem::exists(folder, ignored)) return;
  const run::RunFolder run{folder};
  if (std::filesystem::exists(run.journal(), ignored)) return;  // refused with better words
  std::vector<std::string> names{"result.json", "ab.json", "logs/worker.log"};
  if (!arguments.no_report) {
    names.insert(names.end(),
                 {"index.html", "tables/result.md", "tables/result.tex", "tables/result.csv"});
  }
  result::Manifest(folder, "run").expect_ours(names);
}

void make_report(const std::filesystem::path& folder, const MeasureArguments& arguments) {
  try {
    reports::ReportOptions options;
    options.force = arguments.force;
    const reports::Report report = reports::write_report({folder}, options);
    for (const std::string& message : report.messages) {
      std::cerr << result::bounded_message(message) << "\n";
    }
    std::cout << "page    " << report.page.string() << "\n";
  } catch (const std::exception& error) {
    // The numbers are safe; `attnbench report` makes the page again.
    std::cerr << "attnbench: no page: " << result::bounded_message(error.what())
              << "\nmake it with: attnbench report " << folder.string() << "\n";
  }
}

void tell_of_interruption(const run::RunOutcome& outcome) {
  if (!outcome.interrupted) return;
  std::cerr << "attnbench: interrupted; go on with: attnbench run --resume "
            << outcome.folder.string() << "\n";
}

}  // namespace attnbench::commands
