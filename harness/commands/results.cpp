// attnbench report, compare, import: results as figures and a page, beside each other, and beside
// measurements of other programs.
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/result/document.hpp"
#include "core/text/printable.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/measuring.hpp"
#include "harness/commands/terminal.hpp"
#include "harness/compare/publish.hpp"
#include "harness/run/folder/foreign.hpp"
#include "reports/report.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;
using result::Json;

struct ReportArguments {
  std::vector<std::string> results;
  std::string out;
  std::vector<std::string> formats{"svg", "png"};
  bool no_render = false;
  bool force = false;
  std::string csv;
};

/// Writes the tidy table alone, to a file or to standard output ("-").
int write_csv(const ReportArguments& arguments) {
  const std::string text = reports::csv_of({arguments.results.begin(), arguments.results.end()});
  if (arguments.csv == "-") {
    std::cout << text;
    return 0;
  }
  std::error_code ignored;
  if (fs::exists(arguments.csv, ignored) && !arguments.force) {
    throw UsageFailure(result::quotable(arguments.csv) +
                       ": is there already; choose another name, or pass --force to replace it");
  }
  result::write_atomically(arguments.csv, text);
  return 0;
}

int run_report(const ReportArguments& arguments) {
  if (!arguments.csv.empty()) return write_csv(arguments);
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
  for (const auto& verdict : report.verdicts) print_verdict(verdict);
  return 0;
}

struct CompareArguments {
  std::string base;
  std::string changed;
  double margin = 0.03;
  bool json = false;
  std::string markdown;
  std::string junit;
};

int run_compare(const CompareArguments& arguments) {
  const result::Result base = result::read_result(arguments.base);
  const result::Result changed = result::read_result(arguments.changed);
  const auto comparison = compare::compare(base, changed, arguments.margin);
  const compare::Publication publication{"compare", comparison.basis, {}, typed_command()};
  if (!arguments.markdown.empty()) {
    result::write_atomically(arguments.markdown, compare::to_markdown(comparison, publication));
  }
  if (!arguments.junit.empty()) {
    result::write_atomically(arguments.junit, compare::to_junit(comparison, publication));
  }
  if (arguments.json) {
    std::cout << compare::to_json(comparison).dump(1, ' ', false, Json::error_handler_t::replace)
              << "\n";
  } else {
    print_coloured(compare::to_text(comparison, terminal_width(120), is_utf8()));
  }
  return 0;
}

struct ImportArguments {
  std::vector<std::string> files;
  std::string beside;
  std::string out;
};

Json read_json(const std::string& file) {
  return result::parse_json_file(file, "a file of foreign records, in JSON");
}

/// Warns where other programs ran with another number of threads.
void warn_of_threads(const result::Result& ours, const Json& foreign, const std::string& file) {
  const int theirs = result::threads_of_foreign(foreign, file);
  if (ours.run.threads.value_or(theirs) == theirs) return;
  std::cerr << file << ": measured with " << theirs << " threads, the run beside it with "
            << *ours.run.threads << "\n";
}

int run_import(const ImportArguments& arguments) {
  result::Result joined = result::read_result(arguments.beside);
  for (const std::string& file : arguments.files) {
    const Json foreign = read_json(file);
    joined = result::with_foreign(std::move(joined), foreign, file);
    warn_of_threads(joined, foreign, file);
  }
  const fs::path out = fs::path(arguments.out) / "result.json";
  std::error_code error;
  if (fs::exists(out, error)) {
    throw UsageFailure(out.string() + ": is there already; --out names a folder without a result");
  }
  fs::create_directories(out.parent_path(), error);
  if (error) throw EnvironmentFailure(arguments.out + ": " + error.message());
  result::write_result(out, joined);
  std::cout << out.string() << "\n";
  return 0;
}

}  // namespace

void add_report(CommandLine& line) {
  Command& command = line.add("report", "Figures, tables and a page of results");
  const auto arguments = std::make_shared<ReportArguments>();
  command
      .option("RESULT", arguments->results,
              "a run's folder or a result.json; several make one page")
      .required();
  command.option("--out", arguments->out,
                 "folder to write to (default: the run's; ./report for several)");
  command.option("--format", arguments->formats, "formats of the pictures: svg, png, pdf")
      .comma_separated()
      .one_of({"svg", "png", "pdf"});
  command.flag("--no-render", arguments->no_render, "write specifications, tables and page only");
  command.flag("--force", arguments->force,
               "replace files of the same names that attnbench did not write");
  command.option("--csv", arguments->csv,
                 "write the tidy table to this file, or to standard output (-), and nothing else");
  command.footer(
      "Examples:\n"
      "  attnbench report runs/quickstart-latest --format svg,pdf\n"
      "  attnbench report runs/quickstart-latest --csv - | head\n"
      "  attnbench report runs/monday runs/tuesday --out both");
  command.runs([arguments] { return run_report(*arguments); });
}

void add_compare(CommandLine& line) {
  Command& command =
      line.add("compare", "Describe what differs between two results measured apart");
  const auto arguments = std::make_shared<CompareArguments>();
  command.option("A", arguments->base, "the base: a run's folder or a result.json").required();
  command.option("B", arguments->changed, "what to compare with it").required();
  command
      .option("--margin", arguments->margin,
              "relative change below which nothing is called SLOW or FAST")
      .within(0.0, 1.0)
      .shows_default();
  command.flag("--json", arguments->json, "print JSON");
  command.option("--markdown", arguments->markdown, "write it to this file as Markdown, too");
  command.option("--junit", arguments->junit,
                 "write it to this file for CI, a test case for each cell");
  command.footer(
      "It only describes: the exit code is 0 whatever it finds. SLOW and FAST need 3 or more "
      "rounds on\n"
      "one machine in each, and intervals further apart than the margin. Rounds that other "
      "programs\n"
      "disturbed are left out and counted; disturbed cells are UNCLEAR.");
  command.runs([arguments] { return run_compare(*arguments); });
}

void add_import(CommandLine& line) {
  Command& command =
      line.add("import", "Set what other programs measured beside a result, labelled as theirs");
  const auto arguments = std::make_shared<ImportArguments>();
  command.option("FILE", arguments->files, "files of foreign records (JSON)").required();
  command
      .option("--beside", arguments->beside,
              "the run with the same cells: its folder or a result.json")
      .required();
  command.option("--out", arguments->out, "folder for the joined result.json").required();
  command.footer(
      "The joined result is drawn by attnbench report. Attention that Python can call needs no "
      "file:\nit is measured in the run itself (attnbench run peers).");
  command.runs([arguments] { return run_import(*arguments); });
}

}  // namespace attnbench::commands
