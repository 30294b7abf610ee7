#include "harness/program/commands/shared/ab_sides.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/process/python_word.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/program/commands/shared/worker_arguments.hpp"
#include "harness/program/run/plan/planning.hpp"
#include "harness/program/suite/known_suites.hpp"
#include "harness/program/suite/sides.hpp"
#include "harness/program/suite/suite_entries.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

enum class SideKind { build, plugin, mechanism };

const char* to_string(SideKind kind) {
  switch (kind) {
    case SideKind::build:
      return "a build";
    case SideKind::plugin:
      return "a plugin";
    case SideKind::mechanism:
      return "a mechanism";
  }
  return "";
}

SideKind kind_of(const std::string& word) {
  std::error_code ignored;
  const std::string extension = fs::path(word).extension();
  if (extension == ".so") return SideKind::plugin;
  const bool is_path = fs::exists(word, ignored) || word.find('/') == 0 || word.find('.') == 0;
  return is_path ? SideKind::build : SideKind::mechanism;
}

/// The worker of a build, given as the worker itself, its folder, the build's or the checkout's.
std::string worker_in(const std::string& word) {
  std::error_code ignored;
  const fs::path given = fs::absolute(word, ignored);
  if (fs::is_regular_file(given, ignored) && access(given.c_str(), X_OK) == 0) {
    return given.lexically_normal();
  }
  if (!fs::is_directory(given, ignored)) {
    throw UsageFailure("ab: " + text::quotable(word) +
                       " is neither a folder of a build nor a worker that can be started");
  }
  for (const char* place : {"", "bin", "build/release/bin", "build/bin"}) {
    const fs::path worker = given / place / "attnbench-worker";
    if (fs::is_regular_file(worker, ignored)) return worker.lexically_normal();
  }
  throw UsageFailure("ab: there is no attnbench-worker in " + text::quotable(word) +
                     ", nor in its bin or build/release/bin: build it there (./attnbench build)");
}

/// What is measured on one side.
struct OneSide {
  std::string word;
  process::Build build;
  suite::Document document;
  suite::Choices choices;
  Catalogue catalogue;
};

std::string set_key(const std::string& set) { return set.substr(0, set.find('=')); }

/// Without trainings, which have no time to compare.
std::vector<Cell> timed_cells(const std::vector<Cell>& cells, const process::Build& build,
                              std::size_t& trainings) {
  const std::vector<Forecast> forecasts = run::forecast(cells, build);
  std::vector<Cell> timed;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (forecasts[i].once) {
      ++trainings;
    } else {
      timed.push_back(cells[i]);
    }
  }
  return timed;
}

SideKind common_kind(const SideArguments& sides) {
  const SideKind base = kind_of(sides.base);
  const SideKind changed = kind_of(sides.changed);
  if (base == changed) return base;
  throw UsageFailure("ab: " + text::quotable(sides.base) + " is " + to_string(base) + " and " +
                     text::quotable(sides.changed) + " is " + to_string(changed) +
                     ": the sides must be of one kind");
}

/// Two sides of `plugins` and `document`, which differ as the command line says.
std::vector<OneSide> sides_of(const SuiteArguments& arguments, const suite::Document& document,
                              const SideArguments& sides) {
  const OneSide both{"", process::Build(arguments.plugins), document, arguments.choices, {}};
  std::vector<OneSide> two{both, both};
  if (!sides.base_set.empty() || !sides.changed_set.empty()) {
    if (!sides.base.empty() || !sides.changed.empty()) {
      throw UsageFailure(
          "ab: --base and --new name the sides, and --base-set and --new-set do so, "
          "too: choose");
    }
    const std::vector<const std::vector<std::string>*> sets{&sides.base_set, &sides.changed_set};
    for (std::size_t i = 0; i < 2; ++i) {
      std::vector<std::string>& all = two[i].choices.set;
      all.insert(all.end(), sets[i]->begin(), sets[i]->end());
      for (const std::string& set : *sets[i]) two[i].word += (two[i].word.empty() ? "" : " ") + set;
      if (two[i].word.empty()) two[i].word = "as the suite has it";
    }
    return two;
  }
  if (sides.base.empty() || sides.changed.empty()) {
    throw UsageFailure(
        "ab: a suite needs two sides: --base X --new Y, or --base-set and --new-set");
  }
  const SideKind kind = common_kind(sides);
  const std::vector<std::string> words{sides.base, sides.changed};
  for (std::size_t i = 0; i < 2; ++i) {
    OneSide& side = two[i];
    side.word = words[i];
    if (kind == SideKind::build) side.build.worker = worker_in(words[i]);
    if (kind == SideKind::plugin) {
      constexpr std::size_t max_bytes = 4096 * mebibyte;
      expect_regular_file(words[i], "a plugin's shared object", max_bytes);
      side.build.plugins.push_back(fs::absolute(words[i]).lexically_normal());
    }
    if (kind == SideKind::mechanism) side.document = suite::with_mechanism(document, words[i]);
  }
  if (kind == SideKind::mechanism && words[0] == words[1]) {
    throw UsageFailure("ab: " + words[0] + " is named twice; the base is its own control already");
  }
  return two;
}

compare::MatchRule rule_for(const SideArguments& sides) {
  compare::MatchRule rule;
  for (const auto* sets : {&sides.base_set, &sides.changed_set}) {
    for (const std::string& set : *sets) rule.ignored.insert(set_key(set));
  }
  rule.by_label = sides.base.empty() || kind_of(sides.base) != SideKind::mechanism;
  rule.one_build = !rule.ignored.empty() || !rule.by_label;
  return rule;
}

nlohmann::json labels_of(const std::vector<Cell>& cells) {
  std::vector<std::string> labels;
  for (const Cell& cell : cells) {
    if (std::find(labels.begin(), labels.end(), cell.label) == labels.end()) {
      labels.push_back(cell.label);
    }
  }
  return labels;
}

}  // namespace

ExpandedSides pair_sides(SuiteArguments& arguments) {
  std::vector<std::string> names = take_names(arguments);
  if (names.size() != 2) {
    throw UsageFailure(
        "ab takes two mechanisms, the base and what is compared with it, as in "
        "`attnbench ab latte/chunked latte/fused`; it was given " +
        std::to_string(names.size()));
  }
  for (std::string& name : names) {
    if (names_suite(name)) {
      throw UsageFailure("ab takes two mechanisms, and " + name +
                         " is a suite: --base X --new Y say what is compared with what, as in "
                         "`attnbench ab --base old/build --new build " +
                         name + "`");
    }
    name = mechanism_named(name, arguments.plugins);
  }
  if (names[0] == names[1]) {
    throw UsageFailure(
        "ab: " + names[0] +
        " is named twice; the base is compared with itself in any case, as a control");
  }
  ExpandedSides expanded;
  compare::SidesPlan& plan = expanded.plan;
  plan.base = names[0];
  plan.changed = names[1];
  plan.control = names[0] + ", again";
  const suite::Document document =
      suite::pair_from_command_line(plan.base, plan.changed, plan.control);
  expanded.plugins = arguments.plugins;
  expanded.suite = suite::expand(document, catalogue_with(arguments.plugins), arguments.choices);
  expanded.notes = expanded.suite.notes;
  expanded.suite.cells = compare::in_turns(expanded.suite.cells);
  return expanded;
}

std::vector<std::string> suites_of_sides(SuiteArguments& arguments, const SideArguments& sides) {
  const std::vector<std::string> names = take_names(arguments);
  if (names.empty()) {
    throw UsageFailure(
        "ab --base X --new Y takes suites, as in `attnbench ab --base old/build --new build "
        "ci_kernels`; it was given none");
  }
  std::set<fs::path> files;
  for (const std::string& name : names) {
    if (!names_suite(name)) {
      if (sides.base.empty() && sides.changed.empty()) continue;  // a mechanism at two settings
      throw UsageFailure(
          "ab --base X --new Y takes suites, and " + text::quotable(name) +
          " is not one: expected a file NAME.json, or one of `attnbench list suites`");
    }
    if (!files.insert(fs::weakly_canonical(suite::find_suite(name))).second) {
      throw UsageFailure("ab: the suite " + text::quotable(name) + " is named twice");
    }
  }
  return names;
}

ExpandedSides suite_sides(const std::string& name, SuiteArguments& arguments,
                          const SideArguments& asked) {
  SideArguments sides = asked;
  for (std::string* const side : {&sides.base, &sides.changed}) {
    if (!side->empty()) *side = mechanism_named(*side, arguments.plugins);
  }
  const suite::Document document =
      names_suite(name) ? load_suite(name, arguments)
                        : suite::from_command_line({mechanism_named(name, arguments.plugins)});
  std::vector<OneSide> two = sides_of(arguments, document, sides);
  for (OneSide& side : two) side.catalogue = catalogue_with(side.build);
  for (std::size_t i = 0; i < 2; ++i) {
    suite::drop_unknown(two[i].document, two[i].catalogue, two[1 - i].catalogue);
  }
  ExpandedSides expanded;
  std::vector<std::vector<Cell>> cells;
  std::size_t trainings = 0;
  for (const OneSide& side : two) {
    suite::Expanded suite = suite::expand(side.document, side.catalogue, side.choices);
    cells.push_back(timed_cells(suite.cells, side.build, trainings));
    if (cells.size() == 1) expanded.suite = std::move(suite);
  }
  if (cells[0].empty() && cells[1].empty()) {
    throw UsageFailure("ab: all cells of " + name +
                       " train; ab compares times, `attnbench run` and `compare` what was learned");
  }
  const compare::MatchRule rule = rule_for(sides);
  compare::Matched matched = compare::match_cells(cells[0], cells[1], rule);
  if (matched.matches.empty()) {
    throw UsageFailure(
        "ab: no cell of " + name + " is on both sides" +
        (matched.equal > 0 ? " and differs: the sides are the same in all that it measures" : ""));
  }
  expanded.notes = expanded.suite.notes;
  const auto note = [&](std::size_t count, const std::string& what) {
    if (count > 0) expanded.notes.push_back(std::to_string(count) + what);
  };
  note(trainings / 2, " cells train and are left out: ab compares times.");
  note(matched.equal, " cells are the same on both sides and are left out.");
  compare::SidesPlan& plan = expanded.plan;
  plan.suite = name;
  plan.base = two[0].word;
  plan.changed = two[1].word;
  plan.control = plan.base + ", again";
  plan.matches = matched.matches;
  plan.missing = matched.missing;
  expanded.plugins = arguments.plugins;
  if (two[0].build != two[1].build || (!rule.one_build)) {
    plan.builds = {two[0].build, two[1].build};
    if (process::binary_fingerprint(two[0].build) == process::binary_fingerprint(two[1].build)) {
      expanded.notes.push_back(
          "An A/A run: both sides are the same binary, so every change that is found is noise.");
    }
  }
  expanded.suite.cells = std::move(matched.cells);
  expanded.suite.header["labels"] = labels_of(expanded.suite.cells);
  return expanded;
}

}  // namespace attnbench::commands
