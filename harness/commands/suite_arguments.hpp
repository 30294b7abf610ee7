// Suites on the command line: what `run`, `plan` and `validate` share, and the suites that come
// with the program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/commands/arguments.hpp"
#include "harness/suite/suite.hpp"

namespace attnbench::commands {

struct SuiteArguments {
  suite::Choices choices;
  std::vector<std::string> plugins;
  const Command* command = nullptr;
};

/// Adds --set --device --plugin to `command`. Everything else that stands on the command line
/// (suites, mechanisms, `--length 256..8192`) stays with CLI11 until `take_names`; the command must
/// therefore declare its own flags, and no positionals. `usage` is how it is called, line after
/// line.
void add_setting_arguments(Command& command, SuiteArguments& arguments, const std::string& usage);

/// The same with --profile --with --only --skip, for SUITE… or MECHANISM….
void add_suite_arguments(Command& command, SuiteArguments& arguments,
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

struct KnownSuite {
  std::filesystem::path file;
  std::string title;   ///< empty where the suite says none
  std::string source;  ///< of the protocol
  std::vector<std::string> profiles;
};

/// Suites of the folder `suites` here, else of the nearest one above the program, sorted by name.
/// A file that is no suite is left out: `validate` says why.
std::vector<KnownSuite> known_suites();

/// The file of that name; where there is none and the name is NAME.json or suites/NAME.json, the
/// suite that comes with the program. `name` itself if that is not there either.
std::filesystem::path find_suite(const std::string& name);

}  // namespace attnbench::commands
