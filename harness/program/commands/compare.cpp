// attnbench compare A B: what differs between two results that were measured apart.
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "core/output_file.hpp"
#include "core/result/document.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/measuring.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/compare/publish.hpp"

namespace attnbench::commands {
namespace {

struct CompareArguments {
  std::string base;
  std::string changed;
  double margin = 0.03;
  bool json = false;
  bool force = false;
  std::string markdown;
  std::string junit;
};

int run_compare(const CompareArguments& arguments) {
  const result::Result base = result::read_result(arguments.base);
  const result::Result changed = result::read_result(arguments.changed);
  const auto markdown = output_file("--markdown", arguments.markdown, "compare", arguments.force);
  const auto junit = output_file("--junit", arguments.junit, "compare", arguments.force);
  const auto comparison = compare::compare(base, changed, arguments.margin);
  const compare::Publication publication{"compare", comparison.basis, {}, typed_command()};
  if (markdown) markdown->write(compare::to_markdown(comparison, publication));
  if (junit) junit->write(compare::to_junit(comparison, publication));
  if (arguments.json) {
    std::cout << compare::to_json(comparison).dump(1, ' ', false, Json::error_handler_t::replace)
              << "\n";
  } else {
    print_coloured(compare::to_text(comparison, terminal_width(120), is_utf8()));
  }
  if (compare::anything_in_common(comparison)) return 0;
  std::cerr << "attnbench: the two results have no cell in common: nothing was compared\n";
  return static_cast<int>(ExitCode::undecided);
}

}  // namespace

void declare_compare(Command& command) {
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
  command.flag("--force", arguments->force, "replace files that attnbench did not write");
  command.footer(
      "It only describes: the exit code is 0 whatever it finds, and 4 where no cell is in both. "
      "SLOW\n"
      "and FAST need 3 or more rounds on one machine in each, and intervals further apart than "
      "the\n"
      "margin. Rounds that other programs disturbed are left out and counted; disturbed cells are\n"
      "UNCLEAR.");
  command.runs([arguments] { return run_compare(*arguments); });
}

}  // namespace attnbench::commands
