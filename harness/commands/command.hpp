// Subcommands: one file each. Each adds itself to the CLI11 application and returns its exit code.
#pragma once

#include <functional>

namespace CLI {
class App;
}

namespace attnbench::commands {

/// What every help ends with, unless a command has codes of its own.
constexpr const char* exit_codes =
    "Exit codes: 0 done, 1 a check failed or a cell is wrong, 2 bad usage or suite, 3 the machine\n"
    "cannot do it, 4 the measurement cannot tell, 5 cells crashed or named by --fail-on, 130\n"
    "interrupted.";

/// Adds a subcommand to `app`; when the user chose it, `chosen` is set to what will run it.
using Chosen = std::function<int()>;

void add_run(CLI::App& app, Chosen& chosen);
void add_report(CLI::App& app, Chosen& chosen);
void add_apply(CLI::App& app, Chosen& chosen);
void add_data(CLI::App& app, Chosen& chosen);
void add_check(CLI::App& app, Chosen& chosen);
void add_plan(CLI::App& app, Chosen& chosen);
void add_validate(CLI::App& app, Chosen& chosen);
void add_list(CLI::App& app, Chosen& chosen);
void add_describe(CLI::App& app, Chosen& chosen);
void add_doctor(CLI::App& app, Chosen& chosen);
void add_compare(CLI::App& app, Chosen& chosen);
void add_ab(CLI::App& app, Chosen& chosen);
void add_import(CLI::App& app, Chosen& chosen);
void add_schema(CLI::App& app, Chosen& chosen);
void add_new(CLI::App& app, Chosen& chosen);

}  // namespace attnbench::commands
