// attnbench validate SUITE…: checks suites in all profiles and counts their cells; and shapes.json.
#include <algorithm>
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/suite_arguments.hpp"
#include "harness/program/commands/shared/worker_arguments.hpp"
#include "harness/program/suite/profile.hpp"
#include "harness/program/suite/shapes.hpp"

namespace attnbench::commands {
namespace {

std::string counted(std::size_t cells) {
  return std::to_string(cells) + (cells == 1 ? " cell" : " cells");
}

/// "42 cells in profile quick, 120 cells in full", or the one profile that was chosen.
std::string verdict(const suite::Document& document, const Catalogue& catalogue,
                    const suite::Choices& choices) {
  const auto count = [&](const std::string& profile) {
    suite::Choices with = choices;
    with.profile = profile;
    return counted(suite::expand(document, catalogue, with).cells.size());
  };
  if (!choices.profile.empty()) return count(choices.profile) + " in profile " + choices.profile;
  std::string text = count("") + " in full";
  const suite::SuiteHead head = suite::suite_head(document.value);
  for (const std::string& profile : head.profiles) {
    text.append(", ").append(count(profile)).append(" in profile ").append(profile);
  }
  return text;
}

int validate(SuiteArguments& arguments) {
  const std::vector<std::string> names = take_names(arguments);
  if (names.empty()) throw UsageFailure("expected a suite file: attnbench validate SUITE.json");
  // Check all files against the schema before asking a worker for the catalogue.
  std::string complaints;
  std::vector<suite::Document> documents;
  const auto attempt = [&](const auto& body) {
    try {
      body();
    } catch (const UsageFailure& failure) {
      complaints.append(complaints.empty() ? "" : "\n").append(failure.what());
    }
  };
  for (const std::string& name : names) {
    attempt([&] {
      if (!suite::holds_shapes(name)) return documents.push_back(load_suite(name, arguments));
      const std::size_t count = suite::Shapes::read(name).names().size();
      std::cout << name << ": ok, " << count << (count == 1 ? " shape\n" : " shapes\n");
    });
  }
  if (!documents.empty()) {
    const Catalogue catalogue = catalogue_with(arguments.plugins);
    for (const suite::Document& document : documents) {
      attempt([&] {
        const std::string text = verdict(document, catalogue, arguments.choices);
        std::cout << document.name << ": ok, " << text << "\n";
      });
    }
  }
  if (!complaints.empty()) throw UsageFailure(complaints);
  return 0;
}

}  // namespace

void declare_validate(Command& command) {
  auto arguments = std::make_shared<SuiteArguments>();
  add_suite_arguments(command, *arguments, "SUITE…");
  command.footer(
      "Ends with 0 where every file is valid, with 2 otherwise.\n"
      "\n"
      "Example:\n"
      "  attnbench validate suites/*.json");
  command.runs([arguments] { return validate(*arguments); });
}

}  // namespace attnbench::commands
