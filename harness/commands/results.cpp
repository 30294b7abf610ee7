// attnbench report, compare, import: results as figures and a page, beside each other, and beside
// measurements of other programs.
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/result/document.hpp"
#include "core/text/printable.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/terminal.hpp"
#include "harness/compare/compare.hpp"
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
};

int run_report(const ReportArguments& arguments) {
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

struct CompareArguments {
  std::string base;
  std::string changed;
  double margin = 0.03;
  bool json = false;
};

int run_compare(const CompareArguments& arguments) {
  const result::Json base = result::read_result(arguments.base);
  const result::Json changed = result::read_result(arguments.changed);
  try {
    const auto comparison = compare::compare(base, changed, arguments.margin);
    if (arguments.json) {
      std::cout << compare::to_json(comparison)
                       .dump(1, ' ', false, result::Json::error_handler_t::replace)
                << "\n";
    } else {
      std::cout << compare::to_text(comparison, terminal_width(120), is_utf8());
    }
  } catch (const result::Json::exception& error) {
    throw UsageFailure(result::quotable(arguments.base) + " or " +
                       result::quotable(arguments.changed) +
                       ": /attnbench: " + result::json_complaint(error) +
                       "; are they results that attnbench wrote, complete and unedited?");
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
void warn_of_threads(const Json& ours, const Json& foreign, const std::string& file) {
  const Json threads = ours.at("attnbench").at("run").value("threads", Json());
  if (!threads.is_number() || threads == foreign.at("threads")) return;
  std::cerr << file << ": measured with " << foreign.at("threads")
            << " threads, the run beside it with " << threads << "\n";
}

int run_import(const ImportArguments& arguments) {
  Json joined = result::read_result(arguments.beside);
  for (const std::string& file : arguments.files) {
    const Json foreign = read_json(file);
    try {
      joined = result::with_foreign(joined, foreign, file);
    } catch (const Json::exception& error) {
      throw UsageFailure(result::quotable(file) + ": /records: " + result::json_complaint(error) +
                         ", in it or in " + result::quotable(arguments.beside) + " beside it");
    }
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
  command.footer(
      "Examples:\n"
      "  attnbench report runs/quickstart-latest --format svg,pdf\n"
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
      "The joined result is drawn by attnbench report. tests/benchmarks/peers/ has scripts that "
      "write\nsuch files: PyTorch's and JAX's own attention on the cells of a run.");
  command.runs([arguments] { return run_import(*arguments); });
}

}  // namespace attnbench::commands
