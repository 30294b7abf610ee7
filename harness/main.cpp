// attnbench: the program. Command line in, exit code out; links no LibTorch and loads no plugin.
#include <CLI/CLI.hpp>
#include <iostream>

#include "harness/commands/command.hpp"
#include "harness/errors.hpp"

namespace {

using attnbench::ExitCode;

int exit_code(ExitCode code) { return static_cast<int>(code); }

constexpr const char* footer =
    "Examples:\n"
    "  attnbench run suites/quickstart.json\n"
    "  attnbench run latte flash --length 256..8192\n"
    "  attnbench plan suites/latte_v1_figure_2.json --profile quick\n"
    "  attnbench ab latte/chunked latte/fused --length 1024..4096\n"
    "  attnbench report runs/quickstart-latest\n"
    "\n"
    "Exit codes: 0 done, 1 a check failed or a cell is wrong, 2 bad usage or suite, 3 the machine\n"
    "cannot do it, 4 the measurement cannot tell, 5 cells crashed or named by --fail-on, 130 "
    "interrupted.";

}  // namespace

int main(int argc, char** argv) {
  using namespace attnbench::commands;
  CLI::App app{"Attention mechanisms measured for speed, memory and learning quality.",
               "attnbench"};
  app.require_subcommand(1);
  app.set_version_flag("--version", ATTNBENCH_VERSION_TEXT);
  app.footer(footer);
  Chosen chosen;
  for (auto add : {add_run, add_report, add_check, add_apply, add_data, add_plan, add_validate,
                   add_list, add_describe, add_compare, add_ab, add_import, add_doctor, add_new}) {
    add(app, chosen);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 has codes of its own, from 100 up; ours are the design's.
    return app.exit(error) == 0 ? 0 : exit_code(ExitCode::usage);
  }
  try {
    return chosen();
  } catch (const attnbench::Failure& failure) {
    std::cerr << "attnbench: " << failure.what() << "\n";
    return exit_code(failure.code());
  } catch (const std::exception& error) {
    std::cerr << "attnbench: " << error.what() << "\n";
    return exit_code(ExitCode::environment);
  }
}
