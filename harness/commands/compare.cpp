// attnbench compare: two results measured apart, described side by side.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "harness/commands/command.hpp"
#include "harness/commands/terminal.hpp"
#include "harness/compare/compare.hpp"
#include "core/failure.hpp"
#include "core/result/document.hpp"
#include "core/text/printable.hpp"
#include "core/json_file.hpp"

namespace attnbench::commands {
namespace {

struct Arguments {
  std::string base;
  std::string changed;
  double margin = 0.03;
  bool json = false;
};

int run_compare(const Arguments& arguments) {
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

}  // namespace

void add_compare(CLI::App& app, Chosen& chosen) {
  CLI::App* command =
      app.add_subcommand("compare", "Describe what differs between two results measured apart");
  const auto arguments = std::make_shared<Arguments>();
  command->add_option("A", arguments->base, "the base: a run's folder or a result.json")
      ->required();
  command->add_option("B", arguments->changed, "what to hold against it")->required();
  command
      ->add_option("--margin", arguments->margin,
                   "relative change below which nothing is called SLOW or FAST")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command->add_flag("--json", arguments->json, "print JSON");
  command->footer(
      "It describes and gates nothing: the exit code is 0 whatever it finds. SLOW and FAST need 3 "
      "or\n"
      "more rounds on one machine in each, and intervals further apart than the margin. Rounds in "
      "which\n"
      "other programs had the CPU are left out and counted; cells that are disturbed are UNCLEAR.");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return run_compare(*arguments); }; });
}

}  // namespace attnbench::commands
