// attnbench ab: a verdict on two mechanisms, implementations, option sets, plugins or builds,
// measured in turns.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include "core/failure.hpp"
#include "core/output_file.hpp"
#include "core/result/document.hpp"
#include "core/text/printable.hpp"
#include "harness/program/commands/shared/ab_output.hpp"
#include "harness/program/commands/shared/ab_sides.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/measuring.hpp"
#include "harness/program/commands/shared/restore_settings.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/run/supervise/supervisor.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;
using compare::Gate;

struct AbArguments {
  SuiteArguments suites;
  MeasureArguments measure;
  SideArguments sides;
  Gate gate;  ///< where the command line gives it
  std::string resume;
  std::string markdown;
  std::string junit;
  bool fails = false;
  bool json = false;

  bool given(const char* flag) const { return measure.given(flag); }
};

constexpr const char* ab_explanation =
    "A round measures each side in a fresh process; every other round is reversed (A B B A). The\n"
    "ratio is taken within each round. BASE runs a second time as a control: where it differs "
    "from\n"
    "itself there is no verdict. Rounds that other programs disturbed are left out and counted. "
    "With\n"
    "--threads 1 what is far from 1, and from what the base did against itself, has a verdict "
    "beside\n"
    "other programs, too.\n"
    "\n"
    "Two mechanisms take 12 rounds. On a suite its `gate` says what counts as a change, and how "
    "many\n"
    "rounds are spent: 12, then 24 and 48 of the cells that are unclear. A cell that is SLOW is\n"
    "measured again in processes of its own, and is UNCLEAR unless it is SLOW there, too. The "
    "error\n"
    "(5 %) is that of all cells and looks together. Ctrl-C ends with the verdict of the rounds "
    "there\n"
    "are; --resume continues. Several suites share the error and --seconds-most, and have a folder "
    "each.\n"
    "\n"
    "Ends with 0 where each cell has a verdict, with 4 where one is UNCLEAR or none is timed on "
    "both\n"
    "sides, with 1 where --gate is given and one is SLOW, and where cells failed as `run` does. "
    "The\n"
    "folder is that of a run, with ab.json in it.\n"
    "\n"
    "Examples:\n"
    "  attnbench ab latte/chunked latte/fused --length 1024..4096\n"
    "  attnbench ab --base ../main/build/release --new build/release ci_kernels --profile quick "
    "--gate\n"
    "  attnbench ab --base old/libmine.so --new new/libmine.so mine.json\n"
    "  attnbench ab --base-set chunk=64 --new-set chunk=128 ci_kernels --only 'latte, chunked'\n"
    "  attnbench ab --base-set chunk=64 --new-set chunk=128 latte/chunked --length 1024\n"
    "  attnbench ab mine mine_new --plugin old/libmine.so --plugin new=new/libmine.so\n"
    "  attnbench ab --resume runs/ci_kernels-latest";

/// What the command line says of the gate, over `gate`.
Gate with_flags(Gate gate, const AbArguments& arguments) {
  const auto take = [&](const char* flag, auto Gate::*member) {
    if (arguments.given(flag)) gate.*member = arguments.gate.*member;
  };
  take("--margin", &Gate::relative_change);
  take("--absolute", &Gate::absolute_seconds);
  take("--confidence", &Gate::confidence);
  take("--seconds-most", &Gate::seconds_most);
  take("--confirm", &Gate::confirm);
  if (arguments.given("--rounds")) gate.rounds = gate.rounds_most = arguments.measure.rounds;
  take("--rounds-most", &Gate::rounds_most);
  return gate;
}

Gate gate_of_suite(const Json& json) {
  if (!json.is_object()) return {};
  Gate gate = json.get<Gate>();
  constexpr int usual_doublings = 4;
  if (!json.contains("rounds_most")) gate.rounds_most = usual_doublings * gate.rounds;
  return gate;
}

/// Refuses rounds of which no verdict can follow, before they are measured.
void expect_enough_rounds(const Gate& gate, std::size_t cells) {
  const double confidence = compare::confidence_of_each(gate, cells);
  const int needed = compare::rounds_needed(confidence);
  if (gate.rounds_most >= needed) return;
  throw UsageFailure("ab: " + std::to_string(gate.rounds_most) + " rounds give no interval for " +
                     std::to_string(cells) + " cells at " +
                     std::to_string(compare::looks(gate).size()) + " looks; --rounds " +
                     std::to_string(needed) + " would, or fewer cells (--only)");
}

/// A run that is to be measured, and its plan, which goes into the journal's header.
struct PreparedRun {
  compare::SidesPlan plan;
  run::RunSettings settings;
};

PreparedRun prepared(ExpandedSides expanded, const Gate& gate, const AbArguments& arguments) {
  PreparedRun prepared{std::move(expanded.plan), settings_of(arguments.measure)};
  prepared.plan.gate = gate;
  compare::validate(gate);
  for (const std::string& note : expanded.notes) std::cerr << note << "\n";
  run::RunSettings& settings = prepared.settings;
  settings.suite = std::move(expanded.suite);
  settings.plugins = expanded.plugins;
  settings.out = arguments.measure.out;
  settings.reproduce = reproducing_command(prepared.plan.suite);
  return prepared;
}

PreparedRun prepared_pair(AbArguments& arguments) {
  ExpandedSides expanded = pair_sides(arguments.suites);
  Gate gate;
  gate.rounds = gate.rounds_most = expanded.suite.rounds(12);
  gate.confirm = 0;
  gate = with_flags(gate, arguments);
  return prepared(std::move(expanded), gate, arguments);
}

/// The prepared run of each suite, all before the first is measured. They share the error, and a
/// folder.
std::vector<PreparedRun> prepared_suites(AbArguments& arguments) {
  const std::vector<std::string> names = suites_of_sides(arguments.suites, arguments.sides);
  std::vector<PreparedRun> all;
  std::set<fs::path> folders;
  for (const std::string& name : names) {
    ExpandedSides expanded = suite_sides(name, arguments.suites, arguments.sides);
    Gate gate = with_flags(gate_of_suite(expanded.suite.gate), arguments);
    if (gate.confidence > 0 && gate.confidence < 1) {
      gate.confidence = 1 - (1 - gate.confidence) / static_cast<double>(names.size());
    }
    expect_enough_rounds(gate, expanded.plan.matches.size());
    all.push_back(prepared(std::move(expanded), gate, arguments));
    run::RunSettings& settings = all.back().settings;
    if (settings.out.empty() || names.size() == 1) continue;
    settings.out /= settings.suite.name();
    if (!folders.insert(settings.out).second) {
      throw UsageFailure("ab: two of the suites have the name " + settings.out.filename().string() +
                         ", and one folder: run them apart");
    }
  }
  return all;
}

/// The run that was interrupted.
PreparedRun recalled(const AbArguments& arguments) {
  if (arguments.sides.any() || !arguments.suites.command->other_words().empty()) {
    throw UsageFailure(
        "ab --resume continues with what its folder holds: name no sides and no suite");
  }
  for (const char* flag :
       {"--margin", "--absolute", "--confidence", "--rounds", "--rounds-most", "--seconds-most",
        "--confirm", "--out", "--set", "--shape", "--only", "--skip", "--profile", "--plugin"}) {
    if (!arguments.given(flag)) continue;
    throw UsageFailure(std::string("ab --resume continues with the gate and the cells that the run "
                                   "began with: leave ") +
                       flag + " out");
  }
  PreparedRun again{{}, settings_of(arguments.measure)};
  run::RunSettings& settings = again.settings;
  settings.resume = arguments.resume;
  restore_settings(settings, "ab", *arguments.measure.command);
  try {
    again.plan = settings.suite.header.at("ab").get<compare::SidesPlan>();
  } catch (const SchemaError& error) {
    throw UsageFailure(text::quotable(arguments.resume) +
                       ": its journal does not say what was compared with what (" + error.what() +
                       "); start a new run");
  }
  compare::validate(again.plan.gate);
  return again;
}

/// Judges what was measured so far and asks for what is still unclear. A note is given once.
decltype(run::RunSettings::next_rounds) goes_on(const compare::SidesPlan& plan) {
  using Clock = std::chrono::steady_clock;
  return [plan, begin = Clock::now(), shown = std::string()](
             const result::Result& result,
             const std::map<std::string, double>& seconds_of_rounds) mutable {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    const auto matches =
        plan.matches.empty() ? compare::matches_by_label(result, plan.sides()) : plan.matches;
    auto next = compare::further(compare::paired(result, plan.sides(), matches, plan.gate), matches,
                                 {seconds, seconds_of_rounds});
    if (next && next->note == std::exchange(shown, next->note)) next->note.clear();
    return next;
  };
}

/// The verdicts, with what the sides do not share; says where time ran out.
compare::Comparison judged(const result::Result& result, const compare::SidesPlan& plan,
                           bool interrupted) {
  const auto matches =
      plan.matches.empty() ? compare::matches_by_label(result, plan.sides()) : plan.matches;
  compare::Comparison comparison = compare::paired(result, plan.sides(), matches, plan.gate);
  if (!interrupted) compare::note_time_limit(comparison);
  compare::add_missing(comparison, plan.missing);
  return comparison;
}

/// What `ab` has of the suites that are measured.
struct Verdicts {
  Json documents = Json::array();
  std::vector<compare::PublishedComparison> published;
  ExitCode code = ExitCode::done;  ///< the gravest
};

/// The more severe of two exit codes.
ExitCode graver(ExitCode one, ExitCode other) {
  for (const ExitCode code : {ExitCode::interrupted, ExitCode::failed, ExitCode::environment,
                              ExitCode::cells, ExitCode::usage, ExitCode::undecided}) {
    if (one == code || other == code) return code;
  }
  return ExitCode::done;
}

/// Measures one run and adds its verdict; writes all files of the verdicts so far.
ExitCode measure(PreparedRun prepared, const AbArguments& arguments, const AbFiles& files,
                 Verdicts& verdicts) {
  const compare::SidesPlan& plan = prepared.plan;
  run::RunSettings& settings = prepared.settings;
  if (settings.resume.empty()) settings.suite.header["ab"] = plan;
  settings.in_turns = true;
  settings.rounds = compare::stages(plan.gate).front();
  settings.builds = plan.builds;
  settings.cells_of_second = plan.cells_of_second();
  settings.next_rounds = goes_on(plan);
  const std::string reproduce = settings.reproduce;
  run::Supervisor supervisor(std::move(settings));
  const run::RunOutcome outcome = supervisor.run();

  const compare::Comparison comparison = judged(outcome.result, plan, outcome.interrupted);
  Json document = compare::to_json(comparison);
  document["plan"] = plan;
  document["state"] = outcome.result.run.state;
  write_atomically(outcome.folder / "ab.json", document.dump(1) + "\n");
  document["folder"] = outcome.folder.string();  // printed alone: folders are moved
  verdicts.published.push_back(published_ab(outcome, plan, comparison));
  publish_ab(files, verdicts.published);
  if (!arguments.json) {
    print_coloured(compare::to_text(comparison, terminal_width(120), is_utf8()));
    if (!plan.suite.empty()) print_slow(comparison, reproduce);
    std::cout << "result  " << (outcome.folder / "result.json").string() << "\n";
    std::cout.flush();  // before the next suite's progress, which is another stream's
    if (!arguments.measure.no_report) make_report(outcome.folder, arguments.measure);
  }
  verdicts.documents.push_back(std::move(document));
  if (outcome.interrupted) {
    std::cerr << "attnbench: interrupted; the verdict is that of the rounds that were measured. Go "
                 "on with: attnbench ab --resume "
              << outcome.folder.string() << "\n";
  }
  const ExitCode run_code = run::verdict(outcome, {});
  return run_code == ExitCode::done ? compare::exit_code(comparison, arguments.fails) : run_code;
}

std::vector<PreparedRun> all_prepared(AbArguments& arguments) {
  if (!arguments.resume.empty()) return {recalled(arguments)};
  if (!arguments.sides.any()) return {prepared_pair(arguments)};
  return prepared_suites(arguments);
}

/// Refused before anything is measured. They may be in the folder of the run, which is made here.
AbFiles files_of(const AbArguments& arguments) {
  std::error_code error;
  const bool any = !arguments.markdown.empty() || !arguments.junit.empty();
  if (any && !arguments.measure.out.empty()) fs::create_directories(arguments.measure.out, error);
  const bool force = arguments.measure.force;
  return {output_file("--markdown", arguments.markdown, "ab", force),
          output_file("--junit", arguments.junit, "ab", force)};
}

int run_ab(AbArguments& arguments) {
  using Clock = std::chrono::steady_clock;
  std::vector<PreparedRun> runs = all_prepared(arguments);
  if (arguments.resume.empty()) {
    for (const PreparedRun& one : runs) expect_free(one.settings.out, arguments.measure);
  }
  const AbFiles files = files_of(arguments);
  const auto begin = Clock::now();
  Verdicts verdicts;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs.size() > 1 && arguments.given("--seconds-most") && arguments.gate.seconds_most > 0) {
      const std::chrono::duration<double> spent = Clock::now() - begin;
      const double left = std::max(1.0, arguments.gate.seconds_most - spent.count());
      runs[i].plan.gate.seconds_most = left / static_cast<double>(runs.size() - i);
    }
    const ExitCode code = measure(std::move(runs[i]), arguments, files, verdicts);
    verdicts.code = graver(verdicts.code, code);
    if (code == ExitCode::interrupted) break;
  }
  if (arguments.json) {
    const Json& all = verdicts.documents;
    std::cout << (runs.size() == 1 ? all.at(0) : all).dump(1) << "\n";
  }
  return static_cast<int>(verdicts.code);
}

void add_gate_arguments(Command& command, AbArguments& arguments) {
  Gate& gate = arguments.gate;
  command
      .option(
          "--margin", gate.relative_change,
          "Relative change below which nothing is SLOW or FAST (default: the suite's, else 0.03)")
      .within(0.0, 1.0);
  command.option("--absolute", gate.absolute_seconds, "The same in seconds: both must be passed")
      .within(0.0, 1e9);
  command
      .option("--confidence", gate.confidence,
              "Of all verdicts together (default: the suite's, else 0.95)")
      .within(0.5, 0.999999);
  command
      .option("--rounds-most", gate.rounds_most,
              "Rounds of a cell that stays unclear (default: the suite's, else 4 times --rounds)")
      .within(1, 1000);
  command
      .option("--seconds-most", gate.seconds_most,
              "Measure what ends by then: cells that would not are UNCLEAR (default: the suite's, "
              "else no limit)")
      .within(0.0, 1e9);
  command
      .option("--confirm", gate.confirm,
              "Rounds in fresh processes of a SLOW cell, 0 = none (default: the suite's, else 24)")
      .within(0, 1000);
  command.flag("--gate", arguments.fails, "End with 1 where a cell is SLOW");
}

}  // namespace

void declare_ab(Command& command) {
  const auto arguments = std::make_shared<AbArguments>();
  add_suite_arguments(
      command, arguments->suites,
      "BASE NEW [--SETTING VALUES]…\n--base X --new Y SUITE…\n"
      "--base-set NAME=VALUE --new-set NAME=VALUE SUITE… | MECHANISM\n--resume FOLDER");
  SideArguments& sides = arguments->sides;
  command.option("--base", sides.base,
                 "On a suite: a build's folder or worker, a plugin, or NAME/IMPLEMENTATION");
  command.option("--new", sides.changed, "What is compared with it");
  command.option("--base-set", sides.base_set, "NAME=VALUE on one side alone (repeatable)")
      .repeatable();
  command.option("--new-set", sides.changed_set, "The same on the other").repeatable();
  add_measure_arguments(command, arguments->measure);
  add_gate_arguments(command, *arguments);
  command.option("--resume", arguments->resume, "Folder of a run of ab to continue with");
  command.option("--markdown", arguments->markdown, "Write this file for a pull request's comment");
  command.option("--junit", arguments->junit, "Write this file for CI, a test case for each cell");
  command.flag("--json", arguments->json, "Print the verdicts as JSON, and draw nothing");
  command.footer(ab_explanation);
  command.runs([arguments] { return run_ab(*arguments); });
}

}  // namespace attnbench::commands
