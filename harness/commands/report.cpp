// attnbench report: figures, tables and the page of results.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "harness/commands/command.hpp"
#include "core/text/printable.hpp"
#include "reports/report.hpp"

namespace attnbench::commands {
namespace {

struct Arguments {
  std::vector<std::string> results;
  std::string out;
  std::vector<std::string> formats{"svg", "png"};
  bool no_render = false;
  bool force = false;
};

int run_report(const Arguments& arguments) {
  reports::ReportOptions options;
  options.out = arguments.out;
  options.render = !arguments.no_render;
  options.formats = arguments.formats;
  options.force = arguments.force;
  const reports::Report report =
      reports::write_report({arguments.results.begin(), arguments.results.end()}, options);
  for (const std::string& message : report.messages)
    std::cerr << result::bounded_message(message) << "\n";
  std::cout << report.page.string() << "\n";
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand("report", "Figures, tables and a page of results");
  const auto arguments = std::make_shared<Arguments>();
  command
      ->add_option("RESULT", arguments->results,
                   "a run's folder or a result.json; several make one page")
      ->required();
  command->add_option("--out", arguments->out,
                      "folder to write to (default: the run's; ./report for several)");
  command->add_option("--format", arguments->formats, "formats of the pictures: svg, png, pdf")
      ->delimiter(',')
      ->check(CLI::IsMember({"svg", "png", "pdf"}));
  command->add_flag("--no-render", arguments->no_render,
                    "write specifications, tables and page only");
  command->add_flag("--force", arguments->force,
                    "replace files of the same names that attnbench did not write");
  command->footer(
      "Examples:\n"
      "  attnbench report runs/quickstart-latest --format svg,pdf\n"
      "  attnbench report runs/monday runs/tuesday --out both");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return run_report(*arguments); }; });
}

}  // namespace attnbench::commands
