#include "harness/commands/suite_arguments.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <sstream>

#include "harness/commands/known_suites.hpp"
#include "harness/commands/plugin_argument.hpp"
#include "core/failure.hpp"
#include "harness/suite/scripts.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::commands {
namespace {

/// CLI11 knows of no positionals here, so the usage line has to be told.
class SuiteFormatter : public CLI::Formatter {
 public:
  explicit SuiteFormatter(std::string usage) : usage_(std::move(usage)) {}

  std::string make_usage(const CLI::App*, std::string name) const override {
    std::istringstream lines(usage_);
    std::string text;
    for (std::string line; std::getline(lines, line);) {
      text.append(text.empty() ? "Usage: " : "       ").append(name + " " + line + "\n");
    }
    return text +
           "\nA mechanism or alias by name (`attnbench list`), or with its implementation: "
           "latte/scan.\n"
           "A setting of the task or an option of a mechanism takes VALUE, A,B,C, FIRST..LAST "
           "(doubling)\n"
           "or FIRST..LAST:STEP.\n";
  }

 private:
  std::string usage_;
};

void add_many(CLI::App& command, const char* flag, std::vector<std::string>& values,
              const char* meaning) {
  command.add_option(flag, values, meaning)->allow_extra_args(false);
}

bool is_flag(const std::string& word) { return word.size() > 2 && word.rfind("--", 0) == 0; }

}  // namespace

void add_setting_arguments(CLI::App& command, SuiteArguments& arguments, const std::string& usage) {
  arguments.command = &command;
  command.allow_extras();
  command.formatter(std::make_shared<SuiteFormatter>(usage));
  add_many(command, "--set", arguments.choices.set,
           "NAME=VALUES: a setting or an option, over the suite's (repeatable)");
  command.add_option("--device", arguments.choices.device, "cpu, cuda or cuda:N, over the suite's");
  add_plugin_argument(command, arguments.plugins);
}

void add_suite_arguments(CLI::App& command, SuiteArguments& arguments, const std::string& usage) {
  add_setting_arguments(command, arguments, usage);
  suite::Choices& choices = arguments.choices;
  command.add_option("--profile", choices.profile, "A profile of the suite, such as quick");
  add_many(command, "--with", choices.with,
           "NAME: one more mechanism, beside the suite's own (repeatable)");
  add_many(command, "--only", choices.only,
           "Regular expression (RE2's syntax): only cells that it finds (repeatable)");
  add_many(command, "--skip", choices.skip,
           "Regular expression (RE2's syntax): no cells that it finds (repeatable)");
}

bool names_suite(const std::string& name) {
  std::error_code ignored;
  return std::filesystem::path(name).extension() == ".json" ||
         std::filesystem::is_regular_file(name, ignored);
}

void sort_words(const std::vector<std::string>& words, std::vector<std::string>& names,
                std::vector<std::string>& sets) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!is_flag(words[i])) {
      if (words[i].size() > 1 && words[i].front() == '-') {
        throw UsageFailure("there is no flag " + words[i] + "; --help lists them");
      }
      names.push_back(words[i]);
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
  sort_words(arguments.command->remaining(), names, sets);
  std::vector<std::string> flags;
  for (const CLI::Option* option : arguments.command->get_options()) {
    for (const std::string& flag : option->get_lnames()) flags.push_back(flag);
  }
  for (const std::string& set : sets) {
    const std::string name = set.substr(0, set.find('='));
    const std::string nearest = suite::nearest_word(name, flags);
    if (!nearest.empty()) {
      throw UsageFailure("there is no flag --" + name + "; did you mean \"--" + nearest +
                         "\"? A setting or option of that name is given with --set " + set);
    }
  }
  arguments.choices.set.insert(arguments.choices.set.end(), sets.begin(), sets.end());
  return names;
}

suite::Document load_suite(const std::string& name, SuiteArguments& arguments) {
  suite::Document document = suite::load(find_suite(name));
  suite::take_scripts(document, arguments.plugins);
  return document;
}

std::vector<suite::Document> take_documents(SuiteArguments& arguments) {
  const std::vector<std::string> names = take_names(arguments);
  std::vector<std::string> mechanisms;
  if (names.empty()) {
    throw UsageFailure(
        "nothing to do: expected a suite file or names of mechanisms, as in `attnbench " +
        arguments.command->get_name() + " suites/quickstart.json`");
  }
  std::vector<suite::Document> documents;
  for (const std::string& name : names) {
    if (names_suite(name)) {
      documents.push_back(load_suite(name, arguments));
    } else {
      mechanisms.push_back(suite::take_script(name, "", arguments.plugins));
    }
  }
  for (std::string& name : arguments.choices.with) {
    name = suite::take_script(name, "", arguments.plugins);
  }
  if (!mechanisms.empty()) documents.push_back(suite::from_command_line(mechanisms));
  return documents;
}

}  // namespace attnbench::commands
