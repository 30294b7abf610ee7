// attnbench run SUITE… | MECHANISM…: measures, then shows the table and makes the page.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "core/result/machine.hpp"
#include "core/text/colour.hpp"
#include "core/text/printable.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/measuring.hpp"
#include "harness/program/commands/shared/restore_settings.hpp"
#include "harness/program/commands/shared/suite_arguments.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/commands/shared/worker_arguments.hpp"
#include "harness/program/run/folder/parts.hpp"
#include "harness/program/run/plan/planning.hpp"
#include "harness/program/run/supervise/again.hpp"
#include "harness/program/run/supervise/budget.hpp"
#include "harness/program/run/supervise/progress.hpp"
#include "harness/program/run/supervise/supervisor.hpp"
#include "reports/tables/tables.hpp"
#include "reports/verdict/input.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

struct RunArguments {
  SuiteArguments suites;
  MeasureArguments measure;
  std::string resume;
  std::string reuse;
  std::vector<std::string> retry;
  std::vector<std::string> fail_on;
  std::string shard = "1/1";
  std::string budget;
  bool keep_checkpoints = false;
  bool tables = false;
  bool no_plot = false;
  bool timings = false;
  int jobs = 1;

  bool given(const char* flag) const { return measure.given(flag); }
};

run::RunSettings settings_of(const RunArguments& arguments) {
  run::RunSettings settings = settings_of(arguments.measure);
  settings.plugins = arguments.suites.plugins;
  settings.resume = arguments.resume;
  settings.reuse = arguments.reuse;
  settings.retry = statuses_from("--retry", arguments.retry);
  if (!settings.retry.empty() && settings.resume.empty() && settings.reuse.empty()) {
    throw UsageFailure(
        "--retry says which cells of an earlier run to repeat: add --resume or --reuse");
  }
  settings.shard = process::parse_shard(arguments.shard);
  if (arguments.given("--budget")) {
    if (settings.rounds) throw UsageFailure("--budget chooses the rounds: leave out --rounds");
    settings.budget_seconds = run::seconds_from("--budget", arguments.budget);
  }
  settings.jobs = arguments.jobs;
  settings.keep_checkpoints = arguments.keep_checkpoints;
  settings.process_rank = run::process_rank_from_environment();
  return settings;
}

/// Where several processes train together, the folder of rank 0 is the run; each other rank has a
/// folder beside it.
void use_own_folder(const RunArguments& arguments, run::RunSettings& settings) {
  if (settings.process_rank.alone()) return;
  if (arguments.measure.out.empty() && arguments.resume.empty()) {
    throw UsageFailure("several processes train together: say --out, the same for all");
  }
  if (settings.process_rank.writes_the_run()) return;
  const std::string beside = ".process_" + std::to_string(settings.process_rank.rank);
  if (!settings.out.empty()) settings.out += beside;
  if (!settings.resume.empty()) settings.resume += beside;
}

/// Repeats the warning after the table, where it is seen.
void print_slow_blas(const result::Result& result) {
  const std::string slow = result::blas_warning(result.ceilings_of("cpu"), result.machine);
  if (slow.empty()) return;
  print_with_sequences(run::in_red(text::printable(slow), stdout) + "\n");
}

void print_notes(const suite::Expanded& suite) {
  for (const std::string& note : suite.notes) std::cerr << text::printable(note) << "\n";
}

ExitCode run_one(const RunArguments& arguments, run::RunSettings settings) {
  use_own_folder(arguments, settings);
  const std::optional<double> budget = settings.budget_seconds;
  if (budget) {
    settings.next_rounds = run::Budget(*budget);
    settings.rounds = settings.rounds.value_or(1);
  } else if (!settings.rounds) {
    settings.next_rounds = run::Again(settings.suite.further_rounds());
  }
  if (settings.resume.empty()) expect_free(settings.out, arguments.measure);
  const bool first = settings.process_rank.writes_the_run();
  run::Supervisor supervisor(std::move(settings));
  const run::RunOutcome outcome = supervisor.run();
  const auto verdict = reports::verdict::verdict_of(outcome.result);
  if (first) {
    arguments.tables ? print_tables(outcome.result) : print_cells(outcome.result, verdict);
    std::cout << "result  " << (outcome.folder / "result.json").string() << "\n";
    const std::string disturbed = reports::disturbed_line(outcome.result, outcome.folder.string());
    if (!disturbed.empty()) std::cout << disturbed << "\n";
  }
  if (first) print_slow_blas(outcome.result);
  if (first && !arguments.no_plot) print_plot(verdict);
  if (first) print_verdict(verdict);
  if (first && budget) print_coloured(run::budget_text(outcome.result, *budget));
  if (first && arguments.timings) {
    std::cout << run::parts_table(run::read_journal(outcome.folder / "journal.jsonl").rounds,
                                  outcome.result.run.wall_seconds);
  }
  std::cout.flush();  // before pictures, which take a while, and the next suite's progress
  if (first && !arguments.measure.no_report) make_report(outcome.folder, arguments.measure);
  std::cout.flush();
  print_interruption(outcome);
  if (first && run::measured_nothing(outcome.result)) {
    std::cerr << "attnbench: nothing was measured: " << reports::status_line(outcome.result)
              << "\n";
  }
  return run::verdict(outcome, statuses_from("--fail-on", arguments.fail_on));
}

/// As run_one, but refused cells are reported with `file` and `place`.
ExitCode run_from(const std::string& file, const std::string& place, const RunArguments& arguments,
                  run::RunSettings settings) {
  try {
    return run_one(arguments, std::move(settings));
  } catch (const run::CellsRefused& refused) {
    throw UsageFailure(text::quotable(file) + place + ": " + refused.what());
  }
}

int run_all(RunArguments& arguments) {
  run::RunSettings settings = settings_of(arguments);
  statuses_from("--fail-on", arguments.fail_on);
  if (!arguments.resume.empty()) restore_settings(settings, "run", *arguments.measure.command);
  if (!arguments.resume.empty() && arguments.suites.command->other_words().empty()) {
    const std::string journal = run::find_run_folder(arguments.resume).journal().string();
    return static_cast<int>(run_from(journal, ":1: /cells", arguments, std::move(settings)));
  }
  const std::vector<suite::Document> documents = take_documents(arguments.suites);
  if (documents.size() > 1 && !arguments.resume.empty()) {
    throw UsageFailure("--resume continues with one run: name one suite, or none");
  }
  if (arguments.resume.empty() || arguments.given("--plugin")) {
    settings.plugins = arguments.suites.plugins;  // with the modules that the suites name
  }
  const Catalogue catalogue = catalogue_with(settings.plugins);
  std::vector<suite::Expanded> suites;
  for (const auto& document : documents) {
    suites.push_back(suite::expand(document, catalogue, arguments.suites.choices));
  }
  ExitCode worst = ExitCode::done;
  for (std::size_t i = 0; i < suites.size(); ++i) {
    run::RunSettings one = settings;
    one.suite = suites[i];
    if (one.process_rank.writes_the_run()) print_notes(one.suite);
    one.reproduce = reproducing_command(documents[i].name);
    if (!arguments.measure.out.empty()) {
      one.out = arguments.measure.out;
      if (documents.size() > 1) one.out /= one.suite.name();
    }
    const ExitCode code = run_from(documents[i].name, ": /mechanisms", arguments, std::move(one));
    if (code == ExitCode::interrupted) return static_cast<int>(code);
    if (worst == ExitCode::done || code == ExitCode::failed) worst = code;
  }
  return static_cast<int>(worst);
}

constexpr const char* examples =
    "Examples:\n"
    "  attnbench run quickstart --profile quick\n"
    "  attnbench run latte flash --length 256..8192 --pass forward+backward\n"
    "  attnbench run flash window --shape mistral-7b --length 4096\n"
    "  attnbench run suites/decode.json --set dtype=bfloat16 --only latte\n"
    "  attnbench run quickstart --budget 3m\n"
    "  attnbench run --resume runs/decode-latest\n"
    "\n";

void add_flags(Command& command, RunArguments& arguments) {
  add_measure_arguments(command, arguments.measure);
  command.option("--resume", arguments.resume, "Folder of a run to resume");
  command.option("--reuse", arguments.reuse, "Folder of a run to take unchanged cells from");
  command.option("--retry", arguments.retry, "Statuses whose cells are measured again")
      .comma_separated()
      .repeatable();
  command.option("--fail-on", arguments.fail_on, "Statuses that end the run with exit code 5")
      .comma_separated()
      .repeatable();
  command.flag("--keep-checkpoints", arguments.keep_checkpoints,
               "Keep the last checkpoint of each training (`attnbench generate` reads them)");
  command.flag("--tables", arguments.tables,
               "Print a table of each quantity, too, beside the one that ranks");
  command.flag("--no-plot", arguments.no_plot,
               "Draw no lines above the table that ranks, where the terminal could show them");
  command.flag("--timings", arguments.timings, "Print where the time of the rounds went");
  command.option("--budget", arguments.budget,
                 "Most time of a suite's measuring, such as 60s or 5m: after three rounds of each "
                 "cell the rest goes to cells on which an undecided verdict depends");
  command.option("--shard", arguments.shard, "I/N: only this share of the cells");
  command
      .option("--jobs", arguments.jobs,
              "Trainings at a time, which share the threads (default 1); timed cells run alone")
      .within(1, 256);
}

}  // namespace

void declare_run(Command& command) {
  const auto arguments = std::make_shared<RunArguments>();
  add_suite_arguments(command, arguments->suites);
  add_flags(command, *arguments);
  command.footer(examples + exit_codes());
  command.runs([arguments] { return run_all(*arguments); });
}

}  // namespace attnbench::commands
