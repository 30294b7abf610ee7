// attnbench ab BASE NEW: a verdict on two mechanisms, implementations or builds, measured in turns.
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "core/result/document.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/measuring.hpp"
#include "harness/commands/suite_arguments.hpp"
#include "harness/commands/terminal.hpp"
#include "harness/commands/worker_arguments.hpp"
#include "harness/compare/paired.hpp"
#include "harness/run/supervise/supervisor.hpp"
#include "harness/suite/suite_entries.hpp"

namespace attnbench::commands {
namespace {

struct AbArguments {
  SuiteArguments suites;
  MeasureArguments measure;
  double margin = 0.03;
  bool gate = false;
  bool json = false;
};

constexpr const char* explanation =
    "A round measures each side in a fresh process; every other round is reversed (A B B A). The "
    "ratio\n"
    "is taken within each round, of which there are 12 by default. BASE runs a second time as a\n"
    "control: where it differs from itself there is no verdict. Rounds that other programs "
    "disturbed\n"
    "are left out and counted; with too few others the verdict is UNCLEAR. Ends with 0 where each "
    "size\n"
    "has a verdict, with 4 where one is UNCLEAR, and where cells failed as `run` does. The folder "
    "is\n"
    "that of a run, with ab.json in it.\n"
    "\n"
    "Two builds of a plugin: attnbench ab mine mine_new --plugin old/libmine.so --plugin\n"
    "new=new/libmine.so";

compare::Sides take_sides(SuiteArguments& arguments) {
  std::vector<std::string> names = take_names(arguments);
  if (names.size() != 2) {
    throw UsageFailure(
        "ab takes two mechanisms, the base and what is held against it, as in "
        "`attnbench ab latte/chunked latte/fused`; it was given " +
        std::to_string(names.size()));
  }
  for (std::string& name : names) {
    if (names_suite(name)) {
      throw UsageFailure("ab takes mechanisms, and " + name +
                         " is a suite: `attnbench run` measures it, `attnbench compare` sets two "
                         "results side by side");
    }
    name = suite::resolve_script(name, "", arguments.plugins);
  }
  if (names[0] == names[1]) {
    throw UsageFailure(
        "ab: " + names[0] +
        " is named twice; the base is held against itself in any case, as a control");
  }
  return {names[0], names[1], names[0] + ", again"};
}

int run_ab(AbArguments& arguments) {
  run::RunSettings settings = settings_of(arguments.measure);
  const compare::Sides sides = take_sides(arguments.suites);
  const suite::Document document =
      suite::pair_from_command_line(sides.base, sides.changed, sides.control);
  settings.plugins = arguments.suites.plugins;
  settings.out = arguments.measure.out;
  expect_free(settings.out, arguments.measure);
  const suite::Catalogue catalogue = catalogue_with(settings.plugins);
  settings.suite = suite::expand(document, catalogue, arguments.suites.choices);
  settings.suite.cells = compare::in_turns(settings.suite.cells);
  settings.in_turns = true;
  run::Supervisor supervisor(std::move(settings));
  const run::RunOutcome outcome = supervisor.run();

  const compare::Comparison comparison = compare::paired(outcome.result, sides, arguments.margin);
  const compare::Json verdicts = compare::to_json(comparison);
  result::write_atomically(outcome.folder / "ab.json", verdicts.dump(1) + "\n");
  if (arguments.json) {
    std::cout << verdicts.dump(1) << "\n";
  } else {
    std::cout << compare::to_text(comparison, terminal_width(120), is_utf8()) << "result  "
              << (outcome.folder / "result.json").string() << "\n";
  }
  if (!arguments.measure.no_report && !arguments.json)
    make_report(outcome.folder, arguments.measure);
  if (outcome.interrupted) {
    std::cerr << "attnbench: interrupted; the verdict is that of the rounds that were measured\n";
  }
  const ExitCode run_code = run::verdict(outcome, {});
  return static_cast<int>(
      run_code == ExitCode::done ? compare::exit_code(comparison, arguments.gate) : run_code);
}

}  // namespace

void add_ab(CommandLine& line) {
  Command& command =
      line.add("ab", "Measure two mechanisms or implementations in turns, for a verdict");
  const auto arguments = std::make_shared<AbArguments>();
  add_setting_arguments(command, arguments->suites, "BASE NEW [--SETTING VALUES]…");
  add_measure_arguments(command, arguments->measure);
  command
      .option("--margin", arguments->margin,
              "Relative change below which nothing is called SLOW or FAST")
      .within(0.0, 1.0)
      .shows_default();
  command.flag("--gate", arguments->gate, "End with 1 where NEW is SLOW");
  command.flag("--json", arguments->json, "Print the verdicts as JSON, and draw nothing");
  command.footer(explanation);
  command.runs([arguments] { return run_ab(*arguments); });
}

}  // namespace attnbench::commands
