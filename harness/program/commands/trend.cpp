// attnbench trend RESULT…: adds results to a history, and draws it over commits.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "core/manifest.hpp"
#include "core/output_file.hpp"
#include "core/result/machines.hpp"
#include "core/text/printable.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "reports/render.hpp"
#include "reports/trend/trend.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;
namespace trend = reports::trend;

struct TrendArguments {
  std::vector<std::string> results;
  std::string history = "history.jsonl";
  std::string out;
  bool no_render = false;
  bool force = false;
};

/// Adds the results, all or none.
void add_results(const TrendArguments& arguments) {
  std::vector<trend::HistoryLine> lines;
  for (const std::string& path : arguments.results) {
    std::size_t before = lines.size();
    try {
      for (const result::Result& part : result::by_machine(result::read_result(path))) {
        for (trend::HistoryLine& line : trend::lines_of(part)) lines.push_back(std::move(line));
      }
    } catch (const SchemaError& error) {
      throw UsageFailure(text::quotable(path) + ": " + error.what());
    }
    if (lines.size() == before) {
      std::cerr << text::quotable(path) << ": no cell has a time that counts: nothing to add\n";
    }
  }
  if (!lines.empty()) trend::append_history(arguments.history, lines);
  if (!arguments.results.empty()) {
    std::cout << "added   " << lines.size() << (lines.size() == 1 ? " line to " : " lines to ")
              << arguments.history << "\n";
  }
}

int run_trend(const TrendArguments& arguments) {
  std::error_code ignored;
  if (arguments.results.empty() && !fs::exists(arguments.history, ignored)) {
    throw UsageFailure(text::quotable(arguments.history) +
                       ": there is no such history; name results to begin one");
  }
  add_results(arguments);
  const trend::History history = trend::read_history(arguments.history);
  constexpr std::size_t max_faults = 10;
  for (std::size_t i = 0; i < std::min(history.faults.size(), max_faults); ++i) {
    std::cerr << "left out: " << text::quotable(history.faults[i], 400) << "\n";
  }
  if (history.faults.size() > max_faults) {
    std::cerr << "left out: " << history.faults.size() - max_faults << " more lines\n";
  }
  const std::vector<trend::Series> series = trend::series_of(history.lines);
  const std::string changes = trend::changes_markdown(series);
  if (!arguments.out.empty()) {
    const fs::path out = arguments.out;
    const std::vector<reports::Figure> figures = trend::figures_of(series);
    std::vector<std::string> names{"changes.md"};
    for (const reports::Figure& figure : figures) {
      for (const char* ending : {".vl.json", ".svg", ".png"}) {
        names.push_back("figures/" + figure.name + ending);
      }
    }
    Manifest manifest(out, "trend");
    if (!arguments.force) manifest.expect_ours(names);
    const fs::path staging = out / ".trend";
    std::error_code error;
    fs::remove_all(staging, error);
    fs::create_directories(staging / "figures", error);
    if (error) throw EnvironmentFailure(staging.string() + ": " + error.message());
    for (const reports::Figure& figure : figures) {
      write_atomically(staging / "figures" / (figure.name + ".vl.json"),
                       text::printable_json(figure.spec).dump(1) + "\n");
    }
    if (!arguments.no_render && !figures.empty()) {
      const reports::Rendered rendered = reports::render(staging / "figures", {"svg", "png"});
      if (!rendered.message.empty()) std::cerr << rendered.message << "\n";
    }
    write_atomically(staging / "changes.md", changes);
    publish(staging, out, manifest, "changes.md");
    fs::remove_all(staging, error);
    for (const reports::Figure& figure : figures) {
      std::cout << "figure  " << (out / "figures" / (figure.name + ".vl.json")).string() << "\n";
    }
  }
  std::cout << changes;
  return 0;
}

}  // namespace

void declare_trend(Command& command) {
  const auto arguments = std::make_shared<TrendArguments>();
  command.option("RESULT", arguments->results, "runs or results to add: folders or result.json");
  command.option("--history", arguments->history, "the history, JSON Lines, added to")
      .shows_default();
  command.option("--out", arguments->out, "folder for figures over commits and changes.md");
  command.flag("--no-render", arguments->no_render, "write the figures' specifications only");
  command.flag("--force", arguments->force,
               "replace files of the same names that attnbench did not write");
  command.footer(
      "Prints the changes of level as a Markdown table, machines apart, times in units of each\n"
      "run's calibration probe. It only describes: the exit code is 0 whatever it finds.\n"
      "\n"
      "Examples:\n"
      "  attnbench trend runs/ci-latest --history ci/history.jsonl --out ci/trend\n"
      "  attnbench trend --history ci/history.jsonl");
  command.runs([arguments] { return run_trend(*arguments); });
}

}  // namespace attnbench::commands
