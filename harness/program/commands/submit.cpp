// attnbench submit SUITE --jobs N: a suite as an array of Slurm jobs and a merge after them.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <numeric>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/output_file.hpp"
#include "core/process/fingerprint.hpp"
#include "core/result/document.hpp"
#include "core/text/printable.hpp"
#include "core/text/shell.hpp"
#include "harness/program/cluster/slurm.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/measuring.hpp"
#include "harness/program/commands/shared/suite_arguments.hpp"
#include "harness/program/commands/shared/worker_arguments.hpp"
#include "harness/program/run/folder/run_folder.hpp"
#include "harness/program/run/plan/planning.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;
using cluster::Submission;
using cluster::SubmissionFolder;

struct SubmitArguments {
  SuiteArguments suites;
  const Command* command = nullptr;
  int jobs = 0;
  std::vector<std::string> options;
  std::string setup;
  std::string out;
  std::string again;
  std::vector<std::string> retry;
  bool dry_run = false;
  bool no_ceilings = false;
  bool exclusive = false;
  bool shared = false;
  std::uint64_t seed = 0;
  int threads = 0;
  int rounds = 0;
};

/// The words of the run that each task makes; `words` as they were typed.
std::vector<std::string> run_words(const SubmitArguments& arguments, const suite::Choices& choices,
                                   const std::vector<std::string>& plugins,
                                   const std::vector<std::string>& words) {
  std::vector<std::string> run{"run"};
  run.insert(run.end(), words.begin(), words.end());
  const auto add = [&](const char* flag, const std::vector<std::string>& values) {
    for (const std::string& value : values) run.insert(run.end(), {flag, value});
  };
  add("--set", choices.set);
  add("--with", choices.with);
  add("--only", choices.only);
  add("--skip", choices.skip);
  add("--plugin", plugins);
  if (!choices.profile.empty()) add("--profile", {choices.profile});
  if (!choices.shape.empty()) add("--shape", {choices.shape});
  if (!choices.device.empty()) add("--device", {choices.device});
  const char* data = std::getenv("ATTNBENCH_DATA");
  if (arguments.command->given("--data") && data != nullptr) add("--data", {data});
  if (arguments.command->given("--seed")) add("--seed", {std::to_string(arguments.seed)});
  if (arguments.command->given("--threads")) add("--threads", {std::to_string(arguments.threads)});
  if (arguments.command->given("--rounds")) add("--rounds", {std::to_string(arguments.rounds)});
  if (arguments.no_ceilings) run.emplace_back("--no-ceilings");
  return run;
}

/// Counts the cells and their rounds; whether nodes are asked for whole follows from whether any is
/// timed.
void add_cells(Submission& submission, const SubmitArguments& arguments,
               const suite::Expanded& suite, const std::vector<std::string>& plugins) {
  const int rounds = arguments.command->given("--rounds") ? arguments.rounds : suite.rounds(5);
  bool timed = false;
  const std::vector<Forecast> forecasts = run::forecast(suite.cells, plugins);
  for (std::size_t i = 0; i < suite.cells.size(); ++i) {
    const Forecast& forecast = forecasts[i];
    if (forecast.refused) {
      throw UsageFailure(suite::describe(suite.cells[i]) + ": " + forecast.reason);
    }
    timed = timed || (forecast.supported && !forecast.once);
    submission.cells.push_back({suite.cells[i].id, !forecast.supported ? 0
                                                   : forecast.once     ? 1
                                                                       : rounds});
  }
  submission.exclusive = arguments.exclusive || (timed && !arguments.shared);
  submission.exclusive_reason = arguments.exclusive ? "--exclusive was given"
                                : arguments.shared  ? "--shared was given"
                                : timed             ? "cells are timed"
                                                    : "no cell is timed";
}

/// An absolute folder, made.
SubmissionFolder make_folder(const SubmitArguments& arguments, const std::string& name) {
  if (!arguments.out.empty() && cluster::holds_submission(arguments.out)) {
    throw UsageFailure(text::quotable(arguments.out) +
                       " holds a submission already: continue with attnbench submit --again " +
                       text::quotable(arguments.out) + ", or choose another folder");
  }
  return {fs::absolute(run::make_run_folder(name, arguments.out).path).lexically_normal()};
}

void write_scripts(const SubmissionFolder& folder, const Submission& submission) {
  write_atomically(folder.shard_script(), cluster::shard_script(submission, folder));
  write_atomically(folder.merge_script(), cluster::merge_script(submission, folder));
  cluster::write_submission(folder, submission);
}

void hand_over(Submission& submission, const SubmissionFolder& folder,
               const std::vector<int>& shards, bool dry_run) {
  if (dry_run) {
    for (const std::string& command : cluster::submit_commands(folder, shards)) {
      std::cout << command << "\n";
    }
    std::cout << "written " << folder.path.string() << "; nothing was submitted\n";
    return;
  }
  cluster::submit(submission, folder, shards);
  const cluster::Submitted& last = submission.submitted.back();
  std::cout << "array   " << last.array << ", " << shards.size()
            << (shards.size() == 1 ? " shard of " : " shards of ") << submission.jobs << " ("
            << (submission.exclusive ? "whole nodes: " : "shared nodes: ")
            << submission.exclusive_reason << ")\nmerge   " << last.merge
            << ", after all of them\nstatus  attnbench status "
            << text::shell_word(folder.path.string()) << "\n";
}

int submit_again(const SubmitArguments& arguments) {
  if (!arguments.suites.command->other_words().empty()) {
    throw UsageFailure("--again continues with a submission as it is: name no suite");
  }
  const SubmissionFolder folder{fs::absolute(arguments.again).lexically_normal()};
  Submission submission = cluster::read_submission(folder);
  statuses_from("--retry", arguments.retry);
  std::string why;
  const auto queue = cluster::ask_queue(submission, why);
  if (!queue && !arguments.dry_run) {
    throw EnvironmentFailure(why + ": which tasks are still at work is not known");
  }
  const auto progress = cluster::progress_of(submission, folder, queue);
  for (const cluster::ShardProgress& shard : progress) {
    if (!shard.at_work()) continue;
    throw UsageFailure("shard " + std::to_string(shard.index) + " is " + shard.state +
                       ": wait for it, or end it with scancel " +
                       submission.submitted.back().array);
  }
  const std::vector<int> shards = cluster::unfinished(progress, arguments.retry);
  if (shards.empty()) {
    std::cout << "all " << submission.jobs << " shards are finished: nothing was submitted\n";
    return 0;
  }
  if (process::binary_fingerprint(process::Build{}) != submission.binary) {
    std::cerr << "attnbench: the program was built anew since the first submission: the merge "
                 "refuses shards of two builds\n";
  }
  submission.retry = arguments.retry;
  write_scripts(folder, submission);
  hand_over(submission, folder, shards, arguments.dry_run);
  return 0;
}

int run_submit(SubmitArguments& arguments) {
  if (!arguments.again.empty()) return submit_again(arguments);
  if (!arguments.retry.empty()) throw UsageFailure("--retry goes with --again");
  if (!arguments.command->given("--jobs")) {
    throw UsageFailure("say --jobs N: into how many tasks the suite is split");
  }
  Submission submission;
  for (const std::string& option : arguments.options) {
    submission.options.push_back(cluster::sbatch_option(option));
  }
  std::string setup;
  if (!arguments.setup.empty()) setup = read_file(arguments.setup, "a script for bash");
  const std::vector<std::string> words = arguments.suites.command->other_words();
  const suite::Choices typed = arguments.suites.choices;
  const std::vector<std::string> plugins = arguments.suites.plugins;
  const std::vector<suite::Document> documents = take_documents(arguments.suites);
  if (documents.size() != 1) throw UsageFailure("submit takes one suite at a time");
  const suite::Expanded suite = suite::expand(
      documents.front(), catalogue_with(arguments.suites.plugins), arguments.suites.choices);
  submission.suite = suite.name();
  submission.program = (process::program_folder() / "attnbench").string();
  submission.binary = process::binary_fingerprint(process::Build{});
  submission.started_in = fs::current_path().string();
  submission.run = run_words(arguments, typed, plugins, words);
  submission.jobs = arguments.jobs;
  submission.setup = !arguments.setup.empty();
  add_cells(submission, arguments, suite, arguments.suites.plugins);
  const fs::path place = arguments.out.empty() ? "runs" : arguments.out;
  // Refuses what Slurm's lines cannot hold before anything is made.
  static_cast<void>(cluster::shard_script(submission, {fs::absolute(place)}));
  const SubmissionFolder folder = make_folder(arguments, submission.suite);
  if (submission.setup) write_atomically(folder.setup(), setup);
  write_scripts(folder, submission);
  std::vector<int> shards(static_cast<std::size_t>(submission.jobs));
  std::iota(shards.begin(), shards.end(), 1);
  hand_over(submission, folder, shards, arguments.dry_run);
  return 0;
}

}  // namespace

void declare_submit(Command& command) {
  const auto arguments = std::make_shared<SubmitArguments>();
  arguments->command = &command;
  add_suite_arguments(command, arguments->suites,
                      "SUITE --jobs N\nMECHANISM… [--SETTING VALUES]… --jobs N\n--again FOLDER");
  command
      .option("--jobs", arguments->jobs, "Tasks of the job array, each with a shard of the cells")
      .within(1, 10000);
  command
      .option("--sbatch-option", arguments->options,
              "An option of sbatch, such as partition=long or time=2:00:00 (repeatable)")
      .repeatable();
  command.option("--setup", arguments->setup, "A script that each task sources first");
  command.option("--out", arguments->out, "Folder of the submission (default: runs/NAME-TIME)");
  command.option("--again", arguments->again,
                 "Folder of a submission: submit the shards that are not finished");
  command
      .option("--retry", arguments->retry, "With --again: statuses whose cells are measured again")
      .comma_separated()
      .repeatable();
  command.flag("--dry-run", arguments->dry_run, "Write the scripts, submit nothing");
  const Argument exclusive =
      command.flag("--exclusive", arguments->exclusive, "Ask for whole nodes, trainings or not");
  command.flag("--shared", arguments->shared, "Share nodes with other jobs, though cells are timed")
      .excludes(exclusive);
  command.flag("--no-ceilings", arguments->no_ceilings,
               "Do not measure ceilings: no shares of the roofline");
  command.option("--seed", arguments->seed, "Seed of the inputs (default 0)");
  command.option("--threads", arguments->threads, "Threads of a cell (default: all cores)")
      .within(1, 4096);
  command.option("--rounds", arguments->rounds, "Fresh processes per cell (default: the suite's)")
      .within(1, 1000);
  command.footer(
      "The folder must be on a file system that all nodes share. A task that Slurm starts again\n"
      "continues where it was; a second job merges all shards once the tasks have ended.\n"
      "Timed cells ask for whole nodes, since neighbours disturb them.\n"
      "\n"
      "Examples:\n"
      "  attnbench submit quickstart --jobs 4 --sbatch-option partition=long --out /shared/quick\n"
      "  attnbench status /shared/quick --watch\n"
      "  attnbench submit --again /shared/quick");
  command.runs([arguments] { return run_submit(*arguments); });
}

}  // namespace attnbench::commands
