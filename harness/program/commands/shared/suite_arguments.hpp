// Suites on the command line: what `run`, `plan` and `validate` share.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/program/commands/shared/command.hpp"
#include "harness/program/suite/suite.hpp"
#include "reports/claims/claim.hpp"

namespace attnbench::commands {

struct SuiteArguments {
  suite::Choices choices;
  std::vector<std::string> plugins;
  const Command* command = nullptr;
};

/// Adds --set --shape --device --data --plugin to `command`, which must declare no positionals. All
/// other words (suites, mechanisms, `--length 256..8192`) are left to `take_names`. `usage` says
/// how the command is called, line by line.
void add_setting_arguments(Command& command, SuiteArguments& arguments, const std::string& usage);

/// Adds --data: the folder of prepared data, which workers inherit.
void add_data_argument(Command& command);

/// Adds what add_setting_arguments adds, and --profile --with --only --skip, for SUITE… or
/// MECHANISM….
void add_suite_arguments(Command& command, SuiteArguments& arguments,
                         const std::string& usage = "SUITE…\nMECHANISM… [--SETTING VALUES]…");

/// Loads the named suites, after parsing, and makes a suite of the named mechanisms. Undeclared
/// flags `--NAME VALUE` and `--NAME=VALUE` become --set ("-" in NAME becomes "_"; no VALUE means
/// true). Throws UsageFailure.
std::vector<suite::Document> take_documents(SuiteArguments& arguments);

/// Loads a suite file, or one that comes with the program. Its mechanisms in Python are
/// added to `plugins`.
suite::Document load_suite(const std::string& name, SuiteArguments& arguments);

/// The names of suites and mechanisms; undeclared flags are moved to `choices.set`. A flag that is
/// close to a declared one is refused.
std::vector<std::string> take_names(SuiteArguments& arguments);

/// Splits undeclared words into `names` and, as NAME=VALUE, `sets`: flags with their values, and
/// words that are NAME=VALUE already, as in `--set heads=4 head_dim=80`.
void sort_words(const std::vector<std::string>& words, std::vector<std::string>& names,
                std::vector<std::string>& sets);

/// Whether the name ends in .json, is a file, or is that of a suite that comes with the program
/// ("quickstart"); all others are mechanisms.
bool names_suite(const std::string& name);

/// The papers' claims beside these suites; none without suites, or where a file is not as it should
/// be, which `attnbench figures --claims` says.
std::vector<reports::claims::PaperClaim> known_claims();

}  // namespace attnbench::commands
