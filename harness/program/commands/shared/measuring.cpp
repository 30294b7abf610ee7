#include "harness/program/commands/shared/measuring.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "core/failure.hpp"
#include "core/manifest.hpp"
#include "core/status.hpp"
#include "core/text/colour.hpp"
#include "core/text/printable.hpp"
#include "core/text/shell.hpp"
#include "core/text/spelling.hpp"
#include "harness/program/commands/shared/suite_arguments.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/run/folder/run_folder.hpp"
#include "harness/program/suite/figure_list.hpp"
#include "harness/program/suite/known_suites.hpp"
#include "reports/report.hpp"
#include "reports/tables/tables.hpp"
#include "reports/verdict/plot.hpp"
#include "reports/verdict/sentences.hpp"

namespace attnbench::commands {
namespace {

std::vector<std::string> own_words() {
  std::ifstream stream("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(stream, word, '\0');) words.push_back(word);
  if (!words.empty()) words[0] = std::filesystem::path(words[0]).filename().string();
  return words;
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> flags) {
  return std::any_of(flags.begin(), flags.end(), [&](const char* flag) { return word == flag; });
}

}  // namespace

bool MeasureArguments::given(const char* flag) const { return command->given(flag); }

std::optional<double> WaitArguments::max_seconds() const {
  if (now) return 0;
  if (command == nullptr || !command->given("--wait")) return std::nullopt;
  return seconds;
}

void add_wait_arguments(Command& command, WaitArguments& arguments) {
  arguments.command = &command;
  const Argument now =
      command.flag("--now", arguments.now,
                   "Start at once on a busy machine (on a terminal, timed cells wait for quiet)");
  command
      .option("--wait", arguments.seconds,
              "Most seconds to wait for quiet, on a terminal or not (0: none)")
      .within(0.0, 1e9)
      .excludes(now);
}

void add_measure_arguments(Command& command, MeasureArguments& arguments) {
  arguments.command = &command;
  command.option("--out", arguments.out, "Folder of the run (default: runs/NAME-TIME)");
  command.option("--seed", arguments.seed, "Seed of the inputs (default 0)");
  command.option("--threads", arguments.threads, "Threads of a cell (default: all cores)")
      .within(1, 4096);
  command.option("--rounds", arguments.rounds, "Fresh processes per cell (default: the suite's)")
      .within(1, 1000);
  command.option("--cell-timeout", arguments.cell_timeout, "Seconds for one round of a cell")
      .positive_seconds();
  command.option("--memory-limit", arguments.memory_limit,
                 "Limit for a cell's tensors, such as 20G (default: 80 % of free memory)");
  command.option("--progress", arguments.progress, "auto, plain or json");
  add_wait_arguments(command, arguments.wait);
  command.flag("--keep-blas-core", arguments.keep_blas_core,
               "Use the OPENBLAS_CORETYPE of the environment, and the BLAS of LD_LIBRARY_PATH, in "
               "place of the fastest ones here");
  command.flag("--no-ceilings", arguments.no_ceilings,
               "Do not measure ceilings: no shares of the roofline");
  command.flag("--no-report", arguments.no_report, "No figures and no page at the end");
  command.flag("--force", arguments.force, "Replace files that attnbench did not write");
}

run::RunSettings settings_of(const MeasureArguments& arguments) {
  run::RunSettings settings;
  settings.command = typed_command();
  settings.seed = arguments.seed;
  settings.threads = arguments.threads;
  if (arguments.given("--rounds")) settings.rounds = arguments.rounds;
  if (arguments.given("--cell-timeout")) settings.cell_timeout_seconds = arguments.cell_timeout;
  if (!arguments.memory_limit.empty()) {
    settings.memory_limit_bytes = process::parse_bytes(arguments.memory_limit);
  }
  settings.wait_seconds = arguments.wait.max_seconds();
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
  Manifest(folder, "run").expect_ours(names);
}

void make_report(const std::filesystem::path& folder, const MeasureArguments& arguments) {
  try {
    reports::ReportOptions options;
    options.force = arguments.force;
    options.claims = known_claims();
    options.axes = suite::paper_axes();
    const reports::Report report = reports::write_report({folder}, options);
    for (const std::string& message : report.messages) {
      std::cerr << text::bounded_message(message) << "\n";
    }
    std::cout << "page    " << report.page.string() << "\n";
  } catch (const std::exception& error) {
    // The results are written; `attnbench report` makes the page again.
    std::cerr << "attnbench: no page: " << text::bounded_message(error.what())
              << "\nmake it with: attnbench report " << folder.string() << "\n";
  }
}

namespace {

reports::TableStyle terminal_style(std::size_t plain_width) {
  reports::TableStyle style;
  style.width = terminal_width(plain_width);
  style.colour = text::shows_colour(stdout);
  return style;
}

void print_styled(const std::string& text, const reports::TableStyle& style) {
  style.colour ? print_with_sequences(text) : print_coloured(text);
}

}  // namespace

void print_tables(const result::Result& document) {
  const reports::TableStyle style = terminal_style(80);
  print_styled(reports::table(document, style), style);
  print_coloured(reports::status_line(document) + "\n");
}

void print_cells(const result::Result& document, const reports::verdict::Verdict& verdict) {
  const bool learned = std::any_of(verdict.answers.begin(), verdict.answers.end(),
                                   [](const auto& one) { return !one.accuracies.empty(); });
  if (verdict.rankings.empty() || learned) return print_tables(document);
  const reports::TableStyle style = terminal_style(80);
  print_styled(reports::failures(document, style), style);
  print_coloured(reports::status_line(document) + "\n");
}

void print_verdict(const reports::verdict::Verdict& verdict) {
  const reports::TableStyle style = terminal_style(100);
  const std::string text = reports::verdict::text_of(verdict, style);
  if (!text.empty()) print_styled("\n" + text, style);
}

void print_plot(const reports::verdict::Verdict& verdict) {
  if (isatty(STDOUT_FILENO) == 0 || !is_utf8() || verdict.rankings.empty()) return;
  constexpr std::size_t widest = 110;
  const reports::TableStyle style = terminal_style(widest);
  const std::string plot = reports::verdict::plot_of(verdict.rankings.front(),
                                                     std::min(style.width, widest), style.colour);
  if (!plot.empty()) print_styled("\n" + plot, style);
}

void print_interruption(const run::RunOutcome& outcome) {
  if (!outcome.interrupted) return;
  std::cerr << "attnbench: interrupted; continue with: attnbench run --resume "
            << outcome.folder.string() << "\n";
}

std::string typed_command() { return text::shell_words(own_words()); }

std::string reproducing_command(const std::string& suite) {
  return reproducing_command(own_words(), suite);
}

std::string reproducing_command(const std::vector<std::string>& words, const std::string& suite) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string flag = words[i].substr(0, equals);
    if (is_one_of(flag, {"--no-report", "--no-ceilings", "--now"})) continue;
    if (is_one_of(flag, {"--out", "--resume", "--reuse", "--retry", "--fail-on", "--only", "--skip",
                         "--markdown", "--junit", "--shard", "--progress", "--wait"})) {
      if (equals == std::string::npos) ++i;
      continue;
    }
    const bool other_suite = i > 0 && words[i].rfind("--", 0) != 0 &&
                             words[i - 1].rfind("--", 0) != 0 && names_suite(words[i]) &&
                             words[i] != suite && suite::find_suite(words[i]) != suite;
    if (!other_suite) kept.push_back(words[i]);
  }
  return text::shell_words(kept);
}

std::set<std::string> statuses_from(const std::string& flag,
                                    const std::vector<std::string>& words) {
  const std::vector<std::string>& known = status_words();
  for (const std::string& word : words) {
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    throw UsageFailure(flag + " " + word + ": expected some of " + text::listed(known));
  }
  return {words.begin(), words.end()};
}

}  // namespace attnbench::commands
