// The commands of the program. Each function declares one command with its arguments.
#pragma once

#include "harness/commands/arguments.hpp"

namespace attnbench::commands {

/// The end of every help, unless a command has its own exit codes.
constexpr const char* exit_codes =
    "Exit codes: 0 done, 1 a check failed or a cell is wrong, 2 bad usage or suite, 3 the machine\n"
    "cannot do it, 4 the measurement cannot tell, 5 cells crashed or named by --fail-on, 130\n"
    "interrupted.";

void add_run(CommandLine& line);
void add_report(CommandLine& line);
void add_apply(CommandLine& line);
void add_data(CommandLine& line);
void add_check(CommandLine& line);
void add_plan(CommandLine& line);
void add_validate(CommandLine& line);
void add_list(CommandLine& line);
void add_describe(CommandLine& line);
void add_doctor(CommandLine& line);
void add_compare(CommandLine& line);
void add_ab(CommandLine& line);
void add_import(CommandLine& line);
void add_new(CommandLine& line);

}  // namespace attnbench::commands
