// attnbench run SUITE… | MECHANISM…: measures, then shows the table and makes the page.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "harness/commands/command.hpp"
#include "harness/commands/command_line.hpp"
#include "harness/commands/suite_arguments.hpp"
#include "harness/errors.hpp"
#include "harness/result/record.hpp"
#include "harness/result/table.hpp"
#include "harness/run/catalogue_cache.hpp"
#include "harness/run/supervisor.hpp"
#include "harness/run/verdict.hpp"
#include "reports/report.hpp"

namespace attnbench::commands {
namespace {

struct RunArguments {
  SuiteArguments suites;
  CLI::App* command = nullptr;
  std::string out;
  std::string resume;
  std::string reuse;
  std::vector<std::string> retry;
  std::vector<std::string> fail_on;
  std::string shard = "1/1";
  int jobs = 1;
  std::uint64_t seed = 0;
  int threads = 0;
  int rounds = 0;
  double cell_timeout = 0;
  std::string memory_limit;
  std::string progress = "auto";
  bool keep_blas_core = false;
  bool no_ceilings = false;
  bool no_report = false;

  bool said(const char* flag) const { return command->count(flag) > 0; }
};

run::RunSettings settings_of(const RunArguments& arguments) {
  if (arguments.jobs != 1) {
    throw UsageFailure("--jobs " + std::to_string(arguments.jobs) +
                       ": cells that are timed run one at a time, because two would share caches, "
                       "cores and clock; "
                       "use --shard on several machines");
  }
  run::RunSettings settings;
  settings.plugins = arguments.suites.plugins;
  settings.command = typed_command();
  settings.resume = arguments.resume;
  settings.reuse = arguments.reuse;
  settings.retry = statuses_from("--retry", arguments.retry);
  if (!settings.retry.empty() && settings.resume.empty() && settings.reuse.empty()) {
    throw UsageFailure(
        "--retry says which cells of an earlier run to repeat: add --resume or --reuse");
  }
  settings.shard = run::parse_shard(arguments.shard);
  settings.seed = arguments.seed;
  settings.threads = arguments.threads;
  if (arguments.said("--rounds")) settings.rounds = arguments.rounds;
  if (arguments.said("--cell-timeout")) settings.cell_timeout_seconds = arguments.cell_timeout;
  if (!arguments.memory_limit.empty()) {
    settings.memory_limit_bytes = run::parse_bytes(arguments.memory_limit);
  }
  settings.keep_blas_core = arguments.keep_blas_core;
  settings.ceilings = !arguments.no_ceilings;
  settings.progress = run::progress_style_from(arguments.progress);
  return settings;
}

/// What the journal of the run remembers, where the command line does not say otherwise.
void recall(const RunArguments& arguments, run::RunSettings& settings) {
  const run::RunFolder folder = run::find_run_folder(arguments.resume);
  const auto header = run::read_journal(folder.journal()).header;
  if (!arguments.said("--seed")) settings.seed = header.value("seed", settings.seed);
  if (!arguments.said("--threads")) settings.threads = header.value("threads", settings.threads);
  if (!arguments.said("--rounds") && header.contains("rounds")) {
    settings.rounds = header.at("rounds").get<int>();
  }
  if (!arguments.said("--plugin")) {
    settings.plugins = header.value("plugins", std::vector<std::string>{});
  }
  settings.reproduce = header.value("reproduce", "");
  settings.suite.header = header.at("suite");
  settings.suite.cells = header.at("cells").get<std::vector<run::Json>>();
  settings.suite.measure = header.at("measure");
}

void tell_of_plugins(const suite::Catalogue& catalogue) {
  for (const auto& plugin : catalogue.document.value("plugins", run::Json::array())) {
    if (plugin.value("status", "") == "ok") continue;
    std::cerr << "attnbench: plugin " << plugin.value("path", "") << " "
              << plugin.value("status", "") << ": " << plugin.value("reason", "") << "\n";
  }
}

result::TableStyle style_of_terminal() {
  result::TableStyle style;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20) style.width = size.ws_col;
  return style;
}

void make_report(const std::filesystem::path& folder) {
  try {
    const reports::Report report = reports::write_report({folder}, {});
    for (const std::string& message : report.messages) std::cerr << message << "\n";
    std::cout << "page    " << report.page.string() << "\n";
  } catch (const std::exception& error) {
    // The numbers are safe; `attnbench report` makes the page again.
    std::cerr << "attnbench: no page: " << error.what() << "\n";
  }
}

ExitCode run_one(const RunArguments& arguments, run::RunSettings settings) {
  run::Supervisor supervisor(std::move(settings));
  const run::RunOutcome outcome = supervisor.run();
  std::cout << result::table(outcome.result, style_of_terminal())
            << result::status_line(outcome.result) << "\n"
            << "result  " << (outcome.folder / "result.json").string() << "\n";
  if (!arguments.no_report) make_report(outcome.folder);
  if (outcome.interrupted) {
    std::cerr << "attnbench: interrupted; go on with: attnbench run --resume "
              << outcome.folder.string() << "\n";
  }
  return run::verdict(outcome, statuses_from("--fail-on", arguments.fail_on));
}

int run_all(RunArguments& arguments) {
  run::RunSettings settings = settings_of(arguments);
  statuses_from("--fail-on", arguments.fail_on);
  if (!arguments.resume.empty()) recall(arguments, settings);
  if (!arguments.resume.empty() && arguments.command->remaining().empty()) {
    return static_cast<int>(run_one(arguments, std::move(settings)));
  }
  const std::vector<suite::Document> documents = take_documents(arguments.suites);
  if (documents.size() > 1 && !arguments.resume.empty()) {
    throw UsageFailure("--resume goes on with one run: name one suite, or none");
  }
  if (arguments.resume.empty() || arguments.said("--plugin")) {
    settings.plugins = arguments.suites.plugins;  // with the modules that the suites name
  }
  const suite::Catalogue catalogue = run::load_catalogue(settings.plugins);
  tell_of_plugins(catalogue);
  std::vector<suite::Expanded> suites;
  for (const auto& document : documents) {
    suites.push_back(suite::expand(document, catalogue, arguments.suites.choices));
  }
  ExitCode worst = ExitCode::done;
  for (std::size_t i = 0; i < suites.size(); ++i) {
    run::RunSettings one = settings;
    one.suite = suites[i];
    one.reproduce = reproducing_command(documents[i].name);
    if (!arguments.out.empty()) {
      one.out = documents.size() == 1
                    ? std::filesystem::path(arguments.out)
                    : std::filesystem::path(arguments.out) / one.suite.header.value("name", "run");
    }
    const ExitCode code = run_one(arguments, std::move(one));
    if (code == ExitCode::interrupted) return static_cast<int>(code);
    if (worst == ExitCode::done || code == ExitCode::failed) worst = code;
  }
  return static_cast<int>(worst);
}

void add_flags(CLI::App& command, RunArguments& arguments) {
  command.add_option("--out", arguments.out, "Folder of the run (default: runs/NAME-TIME)");
  command.add_option("--resume", arguments.resume, "Folder of a run to go on with");
  command.add_option("--reuse", arguments.reuse, "Folder of a run to take unchanged cells from");
  command.add_option("--retry", arguments.retry, "Statuses whose cells are measured again")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--fail-on", arguments.fail_on, "Statuses that end the run with exit code 5")
      ->delimiter(',')
      ->allow_extra_args(false);
  command.add_option("--shard", arguments.shard, "I/N: only this share of the cells");
  command.add_option("--jobs", arguments.jobs, "1: timed cells run one at a time");
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
  command.add_flag("--keep-blas-core", arguments.keep_blas_core,
                   "Leave OPENBLAS_CORETYPE to the worker; it can halve the speed");
  command.add_flag("--no-ceilings", arguments.no_ceilings,
                   "Do not measure what the machine can do: no shares of the roofline");
  command.add_flag("--no-report", arguments.no_report, "No figures and no page at the end");
}

}  // namespace

void add_run(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("run", "Measure the cells of suites or of mechanisms");
  const auto arguments = std::make_shared<RunArguments>();
  arguments->command = command;
  add_suite_arguments(*command, arguments->suites);
  add_flags(*command, *arguments);
  command->callback([arguments, &chosen] { chosen = [arguments] { return run_all(*arguments); }; });
}

}  // namespace attnbench::commands
