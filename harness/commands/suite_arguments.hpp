// What `run`, `plan` and `validate` share: SUITE… or MECHANISM…, and the flags that change a suite.
#pragma once

#include <string>
#include <vector>

#include "harness/suite/suite.hpp"

namespace CLI {
class App;
}

namespace attnbench::commands {

struct SuiteArguments {
  suite::Choices choices;
  std::vector<std::string> plugins;
  CLI::App* command = nullptr;
};

/// Adds --set --device --plugin to `command`. Everything else that stands on the command line
/// (suites, mechanisms, `--length 256..8192`) stays with CLI11 until `take_names`; the command must
/// therefore declare its own flags, and no positionals. `usage` is how it is called, line after
/// line.
void add_setting_arguments(CLI::App& command, SuiteArguments& arguments, const std::string& usage);

/// The same with --profile --with --only --skip, for SUITE… or MECHANISM….
void add_suite_arguments(CLI::App& command, SuiteArguments& arguments,
                         const std::string& usage = "SUITE.json…\nMECHANISM… [--SETTING VALUES]…");

/// After parsing: loads every suite named, and makes one more of the mechanisms named. Turns
/// unknown flags `--NAME VALUE` and `--NAME=VALUE` into --set (a "-" in NAME is read as "_";
/// without a VALUE it is true). Throws UsageFailure.
std::vector<suite::Document> take_documents(SuiteArguments& arguments);

/// One suite, by its file or as one that comes with the program; what it names as torchscript:FILE
/// has gone to `plugins`.
suite::Document load_suite(const std::string& name, SuiteArguments& arguments);

/// The first half of take_documents: the names of suites and mechanisms, the settings having gone
/// to `choices.set`. An unknown flag that is nearly one of the command's is taken for a slip.
std::vector<std::string> take_names(SuiteArguments& arguments);

/// Sorts words as CLI11 leaves them: names go to `names`, settings as NAME=VALUE to `sets`.
void sort_words(const std::vector<std::string>& words, std::vector<std::string>& names,
                std::vector<std::string>& sets);

/// A name that ends in .json or is a file; all others are mechanisms.
bool names_suite(const std::string& name);

}  // namespace attnbench::commands
