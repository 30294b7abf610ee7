// attnbench report RESULT…: figures, tables and a page of results.
#include "reports/report.hpp"

#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/output_file.hpp"
#include "core/result/document.hpp"
#include "core/result/machines.hpp"
#include "core/text/printable.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/measuring.hpp"
#include "harness/program/commands/shared/suite_arguments.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/run/folder/samples.hpp"
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
  const reports::Report report =
      reports::write_report({arguments.results.begin(), arguments.results.end()}, options);
  for (const std::string& message : report.messages)
    std::cerr << text::bounded_message(message) << "\n";
  std::cout << report.page.string() << "\n";
  for (const std::string& path : arguments.results) {
    if (!arguments.tables) break;
    for (const auto& part : result::by_machine(result::read_result(path))) print_tables(part);
  }
  for (const auto& verdict : report.verdicts) print_verdict(verdict);
  return 0;
}

}  // namespace

void declare_report(Command& command) {
  const auto arguments = std::make_shared<ReportArguments>();
  command
      .option("RESULT", arguments->results,
              "a run's folder or a result.json; several make one page")
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
