// attnbench compare: two results measured apart, described side by side.
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "harness/commands/command.hpp"
#include "harness/compare/compare.hpp"
#include "harness/result/document.hpp"

namespace attnbench::commands {
namespace {

struct Arguments {
  std::string base;
  std::string changed;
  double margin = 0.03;
  bool json = false;
};

std::size_t terminal_width() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 120;
}

/// Whether the locale's letters go beyond ASCII, by the variables that decide on it.
bool is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    const std::string text = value;
    return text.find("UTF-8") != std::string::npos || text.find("utf8") != std::string::npos;
  }
  return false;
}

int run_compare(const Arguments& arguments) {
  const auto comparison =
      compare::compare(result::read_result(arguments.base), result::read_result(arguments.changed),
                       arguments.margin);
  if (arguments.json) {
    std::cout << compare::to_json(comparison).dump(1) << "\n";
  } else {
    std::cout << compare::to_text(comparison, terminal_width(), is_utf8());
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
      "more rounds on one machine in each, and intervals further apart than the margin.");
  command->callback(
      [arguments, &chosen] { chosen = [arguments] { return run_compare(*arguments); }; });
}

}  // namespace attnbench::commands
