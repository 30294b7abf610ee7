// attnbench figures [PAPER | FIGURE | SUITE]…: the index of the papers' figures, the runs behind
// them, and what the papers claim.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/result/document.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/measuring.hpp"
#include "harness/program/commands/shared/restore_settings.hpp"
#include "harness/program/commands/shared/suite_arguments.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/commands/shared/worker_arguments.hpp"
#include "harness/program/gallery/claims.hpp"
#include "harness/program/gallery/index.hpp"
#include "harness/program/run/folder/run_folder.hpp"
#include "harness/program/run/plan/planning.hpp"
#include "harness/program/run/supervise/supervisor.hpp"
#include "harness/program/suite/known_suites.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;
using gallery::IndexedSuite;
using gallery::StoredState;

struct FiguresArguments {
  SuiteArguments suites;
  MeasureArguments measure;
  std::string gallery;
  std::vector<std::string> retry;
  int jobs = 1;
  bool json = false;
  bool claims = false;
  bool run = false;
  bool again = false;

  fs::path runs() const { return measure.out.empty() ? "runs/figures" : measure.out; }
};

void print_index(const gallery::Index& index, const std::vector<const suite::PaperFigure*>& figures,
                 const std::vector<const IndexedSuite*>& suites) {
  std::vector<TableRow> rows{{"figure", "suite", "quick", "paper", "stored result", "missing"}};
  for (const suite::PaperFigure* figure : figures) {
    const auto followers = index.of_figure(figure->name);
    if (followers.empty()) rows.push_back({figure->name, "", "", "", "", figure->missing});
    for (const IndexedSuite* suite : followers) {
      rows.push_back({figure->name, suite->name, quick_time(*suite), full_time(*suite),
                      stored_words(*suite), figure->missing});
    }
  }
  const std::size_t width = terminal_width(whole_lines);
  if (!figures.empty()) print_columns(std::cout, rows, "", width);
  std::vector<TableRow> others{
      {"no paper's figure", "quick", "in full", "stored result", "what it is"}};
  for (const IndexedSuite* suite : suites) {
    if (!suite->figure.empty()) continue;
    others.push_back(
        {suite->name, quick_time(*suite), full_time(*suite), stored_words(*suite), suite->title});
  }
  if (others.size() > 1) {
    if (!figures.empty()) std::cout << "\n";
    print_columns(std::cout, others, "", width);
  }
  if (!index.estimated_on.empty()) {
    std::cout << "\"about\" is an estimate, for " << index.estimated_on << "\n";
  }
  for (const IndexedSuite* suite : suites) {
    if (suite->state_reason.empty()) continue;
    std::cout << suite->name << ": " << word_of(suite->state) << ", since "
              << text::quotable(suite->state_reason, 300) << "\n";
  }
}

/// The newest folder of a run of the suite as it is now, complete or not; empty where there is
/// none.
fs::path earlier_run(const fs::path& runs, const IndexedSuite& suite) {
  const std::string begin = suite.name + "-" + suite.hash.substr(0, 8) + "-";
  fs::path newest;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(runs, ignored)) {
    const bool ours = entry.path().filename().string().rfind(begin, 0) == 0 &&
                      fs::exists(run::RunFolder{entry.path()}.journal(), ignored);
    if (ours && (newest.empty() || newest.filename() < entry.path().filename())) {
      newest = entry.path();
    }
  }
  return newest;
}

fs::path new_run_folder(const fs::path& runs, const IndexedSuite& suite) {
  std::string time;
  for (const char letter : text::now_text()) {
    if (letter != '-' && letter != ':') time += letter;
  }
  return runs / (suite.name + "-" + suite.hash.substr(0, 8) + "-" + time);
}

run::RunSettings figure_settings(FiguresArguments& arguments, const IndexedSuite& suite) {
  run::RunSettings settings = settings_of(arguments.measure);
  settings.retry = statuses_from("--retry", arguments.retry);
  settings.jobs = arguments.jobs;
  settings.plugins = arguments.suites.plugins;
  if (!arguments.again) settings.resume = earlier_run(arguments.runs(), suite);
  if (!settings.resume.empty()) {
    restore_settings(settings, "run", *arguments.measure.command);
    return settings;
  }
  settings.retry.clear();
  suite::Choices choices = arguments.suites.choices;
  choices.profile = suite::gallery_profile(suite.name);
  SuiteArguments own = arguments.suites;  // the modules of one suite are not those of the next
  const suite::Document document = load_suite(suite.file.string(), own);
  settings.plugins = own.plugins;
  settings.suite = suite::expand(document, catalogue_with(settings.plugins), choices);
  settings.reproduce = "attnbench run " + suite.file.string() +
                       (choices.profile.empty() ? "" : " --profile " + choices.profile);
  settings.out = new_run_folder(arguments.runs(), suite);
  return settings;
}

/// Measures what a suite has not measured yet and stores its result.
ExitCode run_figure(FiguresArguments& arguments, const gallery::Index& index,
                    const IndexedSuite& suite) {
  if (suite.state == StoredState::unreadable && !arguments.measure.force) {
    throw UsageFailure(suite.state_reason +
                       "; a new result would replace it: move it away, or pass --force");
  }
  run::Supervisor supervisor(figure_settings(arguments, suite));
  const run::RunOutcome outcome = supervisor.run();
  print_tables(outcome.result);
  if (outcome.interrupted) return ExitCode::interrupted;
  if (!arguments.measure.no_report) make_report(outcome.folder, arguments.measure);
  std::cout << "stored  " << gallery::store(outcome.result, index.gallery, index.suites).string()
            << "\n"
            << std::flush;
  return run::verdict(outcome, {});
}

bool is_wanted(const FiguresArguments& arguments, const IndexedSuite& suite) {
  return arguments.again || !arguments.retry.empty() || suite.state != StoredState::current;
}

/// A suite that fails does not keep the others from being measured.
ExitCode run_figures(FiguresArguments& arguments, const gallery::Index& index,
                     const std::vector<const IndexedSuite*>& suites) {
  std::vector<const IndexedSuite*> wanted;
  for (const IndexedSuite* suite : suites) {
    if (is_wanted(arguments, *suite)) wanted.push_back(suite);
  }
  if (wanted.empty()) std::cout << "every stored result is current; --again measures again\n";
  ExitCode worst = ExitCode::done;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const IndexedSuite& suite = *wanted[i];
    std::cout << i + 1 << " of " << wanted.size() << ": " << suite.name << ", " << quick_time(suite)
              << "\n"
              << std::flush;
    ExitCode code = ExitCode::done;
    try {
      code = run_figure(arguments, index, suite);
    } catch (const Failure& failure) {
      std::cerr << "attnbench: " << text::bounded_message(failure.what()) << "\n";
      code = failure.code();
    }
    if (code == ExitCode::interrupted) {
      std::cerr << "attnbench: interrupted; the same command continues\n";
      return code;
    }
    if (worst == ExitCode::done || code == ExitCode::failed) worst = code;
  }
  return worst;
}

fs::path gallery_folder(const FiguresArguments& arguments, const fs::path& suites) {
  if (!arguments.gallery.empty()) return fs::absolute(arguments.gallery);
  return suites.parent_path() / "reports" / "gallery";
}

void print_claims(const std::vector<gallery::HeldClaim>& claims) {
  std::vector<TableRow> rows{{"claim", "verdict", "what it says", "what was found"}};
  for (const gallery::HeldClaim& one : claims) {
    rows.push_back({one.claim.id(), to_string(one.evidence.outcome),
                    one.claim.claim + " (" + one.claim.place + ")",
                    reports::claims::found_words(one.evidence)});
  }
  print_columns(std::cout, rows, "", terminal_width(whole_lines));
  std::cout << gallery::counted_words(claims) << "\n";
}

/// Words that name a result on the disk are runs, the others select.
void show_claims(const FiguresArguments& arguments, const gallery::Index& index,
                 const std::vector<std::string>& words) {
  std::vector<std::string> names;
  std::vector<fs::path> runs;
  std::error_code ignored;
  for (const std::string& word : words) {
    if (fs::exists(word, ignored)) {
      runs.emplace_back(word);
    } else {
      names.push_back(word);
    }
  }
  const std::vector<gallery::HeldClaim> claims = gallery::hold_claims(index, names, runs);
  if (arguments.json) {
    std::cout << nlohmann::json(claims).dump(2) << "\n";
  } else {
    print_claims(claims);
  }
}

int figures(FiguresArguments& arguments) {
  const std::vector<std::string> words = take_names(arguments.suites);
  if (arguments.claims && arguments.run) {
    throw UsageFailure("--claims reads results, --run makes them: call one after the other");
  }
  if (!arguments.suites.choices.shape.empty()) {
    throw UsageFailure(
        "figures are measured as their suites say; measure at a shape with: attnbench run SUITE "
        "--shape " +
        arguments.suites.choices.shape);
  }
  if (!arguments.suites.choices.set.empty()) {
    throw UsageFailure(
        "figures are measured as their suites say; change a setting with: attnbench "
        "run SUITE --set " +
        arguments.suites.choices.set.front());
  }
  const fs::path found = suite::suites_folder();
  if (found.empty()) {
    throw EnvironmentFailure(
        "there is no folder of suites here or above the program; call it in the repository");
  }
  const fs::path suites = fs::absolute(found).lexically_normal();
  const fs::path folder = gallery_folder(arguments, suites);
  gallery::Index index = gallery::read_index(suites, folder);
  if (arguments.claims) {
    show_claims(arguments, index, words);
    return static_cast<int>(ExitCode::done);
  }
  ExitCode code = ExitCode::done;
  if (arguments.run) {
    code = run_figures(arguments, index, select(index, words));
    if (code == ExitCode::interrupted) return static_cast<int>(code);
    index = gallery::read_index(suites, folder);
  }
  const auto figures = select_figures(index, words);
  const auto chosen = select(index, words);
  if (arguments.json) {
    std::cout << gallery::as_json(index, figures, chosen).dump(2) << "\n";
  } else if (!arguments.run) {
    print_index(index, figures, chosen);
  }
  return static_cast<int>(code);
}

}  // namespace

void declare_figures(Command& command) {
  const auto arguments = std::make_shared<FiguresArguments>();
  add_setting_arguments(
      command, arguments->suites,
      "[PAPER | FIGURE | SUITE]…\n--claims [PAPER | FIGURE | SUITE | CLAIM | RUN]…");
  add_measure_arguments(command, arguments->measure);
  command.flag("--json", arguments->json, "The index, or the claims, as JSON");
  command.flag("--claims", arguments->claims,
               "What the papers claim, held against stored results or RUN…: seen, opposite seen, "
               "cannot tell, not run");
  command.flag("--run", arguments->run,
               "Measure what the gallery keeps, mostly quick profiles, where it is missing or "
               "stale; repeated after "
               "Ctrl-C, it continues");
  command.flag("--again", arguments->again,
               "With --run: measure those that are current, too, anew");
  command.option("--retry", arguments->retry, "With --run: statuses whose cells are measured again")
      .comma_separated()
      .repeatable();
  command.option("--jobs", arguments->jobs, "Trainings at a time, which share the threads")
      .within(1, 256);
  command.option("--gallery", arguments->gallery,
                 "Folder of stored results and pictures (default: reports/gallery beside suites)");
  command.footer(
      "Examples:\n"
      "  attnbench figures\n"
      "  attnbench figures latte_v1 --json\n"
      "  attnbench figures --run latte_v1.figure_2 lavo_table_10\n"
      "  attnbench figures --claims latte_v2\n"
      "--out is the folder of the runs, runs/figures by default. docs/blocks.py of the repository "
      "draws\nthe pictures of what is stored and writes the tables of the documents.");
  command.runs([arguments] { return figures(*arguments); });
}

}  // namespace attnbench::commands
