// attnbench report RESULT…: figures, tables and a page of results.
#include "reports/report.hpp"

#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/output_file.hpp"
#include "core/result/document.hpp"
#include "core/result/machines.hpp"
#include "core/text/printable.hpp"
#include "core/text/shell.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/measuring.hpp"
#include "harness/program/commands/shared/suite_arguments.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/compare/compare.hpp"
#include "harness/program/run/folder/run_folder.hpp"
#include "harness/program/run/folder/samples.hpp"
#include "harness/program/suite/figure_list.hpp"
#include "reports/tables/csv.hpp"
#include "reports/verdict/document.hpp"

namespace attnbench::commands {
namespace {

struct ReportArguments {
  std::vector<std::string> results;
  std::string out;
  std::vector<std::string> formats{"svg", "png"};
  bool no_render = false;
  bool force = false;
  bool tables = false;
  bool no_plot = false;
  std::string csv;
  std::string samples;
  bool json = false;
};

/// Writes the tidy table alone, to a file or to standard output ("-").
int write_csv(const ReportArguments& arguments) {
  const OutputFile file("--csv", arguments.csv, "report", arguments.force);
  const std::string text = reports::csv_of({arguments.results.begin(), arguments.results.end()});
  file.write(text);
  return 0;
}

/// Writes the table of samples alone, likewise.
int write_samples(const ReportArguments& arguments) {
  if (arguments.results.size() != 1) {
    throw UsageFailure("--samples: expected one result, to have one table");
  }
  const OutputFile file("--samples", arguments.samples, "report", arguments.force);
  file.write(reports::csv_samples(run::with_samples(arguments.results.front())));
  return 0;
}

int print_json(const ReportArguments& arguments) {
  nlohmann::json verdicts = nlohmann::json::array();
  for (const auto& verdict :
       reports::verdicts_of({arguments.results.begin(), arguments.results.end()})) {
    verdicts.push_back(reports::verdict::document_of(verdict));
  }
  std::cout << nlohmann::json{{"verdicts", std::move(verdicts)}}.dump(1) << "\n";
  return 0;
}

/// What of two results was compared, for their page: each pair of times.
reports::Verdicts compared(const result::Result& base, const result::Result& changed) {
  constexpr double margin = 0.03;
  const compare::Comparison comparison = compare::compare(base, changed, margin);
  reports::Verdicts verdicts;
  verdicts.turns.margin = margin;
  verdicts.turns.apart = comparison.basis;
  for (const std::string& sentence : comparison.differences) verdicts.turns.apart += " " + sentence;
  for (const compare::Pair& pair : comparison.pairs) {
    using compare::SpeedVerdict;
    const bool in_both = pair.verdict != SpeedVerdict::added && pair.verdict != SpeedVerdict::gone;
    const bool untimed = pair.what.empty() && pair.verdict == SpeedVerdict::same;
    if (in_both && !untimed) {
      verdicts.pairs.push_back(compare::to_json(pair).get<reports::PairVerdict>());
    }
  }
  return verdicts;
}

/// "2026-11-28 310b994f beside 2026-11-27 09a150a4: 3 FAST, 40 SAME", and how to see which.
void print_compared(const reports::Verdicts& verdicts, const ReportArguments& arguments) {
  std::map<std::string, int> counts;
  for (const reports::PairVerdict& pair : verdicts.pairs) ++counts[pair.verdict];
  std::string words;
  for (const auto& [verdict, count] : counts) {
    words += (words.empty() ? "" : ", ") + std::to_string(count) + " " + verdict;
  }
  std::cout << verdicts.turns.changed << " beside " << verdicts.turns.base << ": " << words
            << " (attnbench compare " << text::shell_word(arguments.results[0]) << " "
            << text::shell_word(arguments.results[1]) << ")\n";
}

int run_report(const ReportArguments& arguments) {
  if (!arguments.csv.empty()) return write_csv(arguments);
  if (!arguments.samples.empty()) return write_samples(arguments);
  if (arguments.json) return print_json(arguments);
  reports::ReportOptions options;
  options.out = arguments.out;
  options.render = !arguments.no_render;
  options.formats = arguments.formats;
  options.force = arguments.force;
  options.claims = known_claims();
  options.compared = compared;
  options.axes = suite::paper_axes();
  const reports::Report report =
      reports::write_report({arguments.results.begin(), arguments.results.end()}, options);
  for (const std::string& message : report.messages)
    std::cerr << text::bounded_message(message) << "\n";
  std::cout << report.page.string() << "\n";
  for (const std::string& path : arguments.results) {
    if (!arguments.tables) break;
    for (const auto& part : result::by_machine(result::read_result(path))) print_tables(part);
  }
  for (const auto& verdict : report.verdicts) {
    if (!arguments.no_plot) print_plot(verdict);
    print_verdict(verdict);
  }
  if (report.compared) print_compared(*report.compared, arguments);
  for (const std::string& path : arguments.results) {
    run::remove_left_workers(run::folder_holding(path));
  }
  return 0;
}

}  // namespace

void declare_report(Command& command) {
  const auto arguments = std::make_shared<ReportArguments>();
  command
      .option("RESULT", arguments->results,
              "a run's folder or a result.json; several make one page, which begins with what they "
              "share, side by side")
      .required();
  const auto out = command.option("--out", arguments->out,
                                  "folder to write to (default: the run's; ./report for several)");
  command.option("--format", arguments->formats, "formats of the pictures: svg, png, pdf")
      .comma_separated()
      .one_of({"svg", "png", "pdf"});
  command.flag("--no-render", arguments->no_render, "write specifications, tables and page only");
  command.flag("--force", arguments->force,
               "replace files of the same names that attnbench did not write");
  const auto tables =
      command.flag("--tables", arguments->tables, "print a table of each quantity, too");
  command.flag("--no-plot", arguments->no_plot,
               "draw no lines above the table that ranks, where the terminal could show them");
  const auto csv = command.option(
      "--csv", arguments->csv,
      "write the tidy table to this file, or to standard output (-), and nothing else");
  const auto samples = command.option(
      "--samples", arguments->samples,
      "write a line for each sample to this file, or to standard output (-), and nothing else");
  samples.excludes(csv).excludes(out).excludes(tables);
  command.flag("--json", arguments->json, "print the verdicts as JSON, and write nothing")
      .excludes(csv)
      .excludes(samples)
      .excludes(out)
      .excludes(tables);
  command.footer(
      "Examples:\n"
      "  attnbench report runs/quickstart-latest --format svg,pdf\n"
      "  attnbench report runs/quickstart-latest --csv - | head\n"
      "  attnbench report runs/quickstart-latest --json\n"
      "  attnbench report runs/monday runs/tuesday --out both");
  command.runs([arguments] { return run_report(*arguments); });
}

}  // namespace attnbench::commands
