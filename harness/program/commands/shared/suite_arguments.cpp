#include "harness/program/commands/shared/suite_arguments.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <sstream>

#include "core/failure.hpp"
#include "core/text/printable.hpp"
#include "core/text/spelling.hpp"
#include "harness/program/commands/shared/worker_arguments.hpp"
#include "harness/program/suite/known_suites.hpp"
#include "harness/program/suite/suite.hpp"
#include "harness/program/suite/suite_entries.hpp"

namespace attnbench::commands {
namespace {

constexpr const char* usage_note =
    "A mechanism or alias by name (`attnbench list`), or with its implementation: latte/scan.\n"
    "A setting of the task or an option of a mechanism takes VALUE, A,B,C, FIRST..LAST (doubling)\n"
    "or FIRST..LAST:STEP. Without a suite the task is `kernel`; --task NAME is another one\n"
    "(`attnbench list tasks`).";

bool is_flag(const std::string& word) { return word.size() > 2 && word.rfind("--", 0) == 0; }

namespace fs = std::filesystem;

/// Refuses a second one: sizes of two models would be mixed.
std::string the_one_shape(const std::vector<std::string>& given) {
  if (given.size() == 1) return given.front();
  throw UsageFailure("--shape is given more than once, " + text::listed(given) +
                     "; expected one: measure each in a run of its own");
}

/// Workers inherit it.
void use_data_folder(const std::vector<std::string>& given) {
  std::error_code fault;
  const fs::path folder = fs::absolute(given.back(), fault);
  if (!fs::is_directory(folder, fault)) {
    throw UsageFailure("--data " + given.back() +
                       " is not a folder; `attnbench data` prepares one");
  }
  ::setenv("ATTNBENCH_DATA", folder.c_str(), 1);
}

}  // namespace

void add_data_argument(Command& command) {
  command.option("--data", std::function<void(const std::vector<std::string>&)>(use_data_folder),
                 "Folder of prepared data (`attnbench data`), else ATTNBENCH_DATA");
}

void add_setting_arguments(Command& command, SuiteArguments& arguments, const std::string& usage) {
  arguments.command = &command;
  command.accept_other_words(usage, usage_note);
  command
      .option("--set", arguments.choices.set,
              "NAME=VALUES…: settings or options, over the suite's (repeatable)")
      .repeatable();
  command
      .option("--shape",
              std::function<void(const std::vector<std::string>&)>(
                  [&shape = arguments.choices.shape](const auto& given) {
                    shape = the_one_shape(given);
                  }),
              "NAME: the sizes of a known model (`attnbench list shapes`), in place of the "
              "suite's shape; what is set besides wins over it")
      .repeatable();
  command.option("--device", arguments.choices.device, "cpu, cuda or cuda:N, over the suite's");
  add_data_argument(command);
  add_plugin_argument(command, arguments.plugins);
}

void add_suite_arguments(Command& command, SuiteArguments& arguments, const std::string& usage) {
  add_setting_arguments(command, arguments, usage);
  suite::Choices& choices = arguments.choices;
  command.option("--profile", choices.profile, "A profile of the suite, such as quick");
  command
      .option("--with", choices.with,
              "NAME: a further mechanism beside the suite's own (repeatable)")
      .repeatable();
  command
      .option("--only", choices.only,
              "Regular expression (RE2's syntax): only matching cells. It searches task, label, "
              "what varies, id, mechanism/implementation, device and each NAME=VALUE (repeatable)")
      .repeatable();
  command
      .option("--skip", choices.skip,
              "Regular expression (RE2's syntax): no matching cells (repeatable)")
      .repeatable();
}

bool names_suite(const std::string& name) {
  suite::refuse_torchscript(name);  // a file that is there would be read as a suite
  std::error_code ignored;
  return fs::path(name).extension() == ".json" || fs::is_regular_file(name, ignored) ||
         !suite::own_suite(name + ".json").empty();
}

/// Whether the word is NAME=VALUE; not NAME=python:…, a mechanism with a name of its own.
bool is_setting(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos || names_suite(word)) return false;
  const auto in_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), in_name) &&
         word.compare(equals + 1, 7, "python:") != 0;
}

void sort_words(const std::vector<std::string>& words, std::vector<std::string>& names,
                std::vector<std::string>& sets) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_flag(words[i])) {
      if (words[i].size() > 1 && words[i].front() == '-') {
        throw UsageFailure("there is no flag " + words[i] + "; --help lists them");
      }
      (is_setting(words[i]) ? sets : names).push_back(words[i]);
      continue;
    }
    std::string name = words[i].substr(2), value = "true";
    const std::size_t equals = name.find('=');
    if (equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
    } else if (i + 1 < words.size() && !is_flag(words[i + 1])) {
      value = words[++i];
    }
    std::replace(name.begin(), name.end(), '-', '_');
    sets.push_back(name + "=" + value);
  }
}

std::vector<std::string> take_names(SuiteArguments& arguments) {
  std::vector<std::string> names, sets;
  sort_words(arguments.command->other_words(), names, sets);
  const std::vector<std::string> flags = arguments.command->flags();
  for (const std::string& set : sets) {
    const std::string name = set.substr(0, set.find('='));
    const std::string nearest = text::nearest_word(name, flags);
    if (!nearest.empty()) {
      throw UsageFailure("there is no flag --" + name + "; did you mean \"--" + nearest +
                         "\"? A setting or option of that name is given with --set " + set);
    }
  }
  arguments.choices.set.insert(arguments.choices.set.end(), sets.begin(), sets.end());
  return names;
}

suite::Document load_suite(const std::string& name, SuiteArguments& arguments) {
  suite::Document document = suite::load(suite::find_suite(name));
  suite::resolve_scripts(document, arguments.plugins, is_builtin);
  return document;
}

namespace {

/// The names of settings and options, and of what --set takes besides.
std::vector<std::string> setting_names(const Catalogue& catalogue) {
  std::set<std::string> names{"implementation", "device", "task"};
  for (const TaskSpec& task : catalogue.tasks) {
    for (const Option& setting : task.settings) names.insert(setting.name);
  }
  for (const MechanismSpec& mechanism : catalogue.mechanisms) {
    for (const Option& option : mechanism.options) names.insert(option.name);
  }
  return {names.begin(), names.end()};
}

/// What a command line without a suite or mechanism lacks, by what it has.
std::string nothing_named(const SuiteArguments& arguments) {
  const std::string call = "`attnbench " + arguments.command->name() + " ";
  const std::string expected = "expected a suite or names of mechanisms, as in " + call;
  if (arguments.choices.set.empty()) return "nothing to do: " + expected + "quickstart`";
  const std::string& set = arguments.choices.set.front();
  const std::string name = set.substr(0, set.find('='));
  const Catalogue catalogue = catalogue_with(arguments.plugins);
  const std::vector<std::string> settings = setting_names(catalogue);
  if (std::find(settings.begin(), settings.end(), name) != settings.end()) {
    return "nothing to do: " + text::quotable(set) +
           " says a setting or an option, of no suite or " + "mechanism; " + expected + "latte " +
           text::quotable(set) + "`";
  }
  std::vector<std::string> known = catalogue.names();
  for (const suite::KnownSuite& one : suite::known_suites()) known.push_back(one.file.stem());
  known.insert(known.end(), settings.begin(), settings.end());
  return "no mechanism, option or suite is called \"" + text::quotable(name) +
         "\" (NAME=VALUE says a setting or an option, as after --set); " +
         text::suggestion(name, known);
}

}  // namespace

std::vector<suite::Document> take_documents(SuiteArguments& arguments) {
  const std::vector<std::string> names = take_names(arguments);
  std::vector<std::string> mechanisms;
  if (names.empty()) throw UsageFailure(nothing_named(arguments));
  std::vector<suite::Document> documents;
  for (const std::string& name : names) {
    if (names_suite(name)) {
      documents.push_back(load_suite(name, arguments));
    } else {
      mechanisms.push_back(mechanism_named(name, arguments.plugins));
    }
  }
  for (std::string& name : arguments.choices.with) {
    name = mechanism_named(name, arguments.plugins);
  }
  if (!mechanisms.empty()) documents.push_back(suite::from_command_line(mechanisms));
  return documents;
}

std::vector<reports::claims::PaperClaim> known_claims() {
  try {
    return reports::claims::read_claims(suite::suites_folder() / "claims");
  } catch (const UsageFailure&) {
    return {};
  }
}

}  // namespace attnbench::commands
