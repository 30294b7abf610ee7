// attnbench merge RUN… --out DIR: the runs of a suite's shards as one result, with page and tables.
#include <filesystem>
#include <iostream>
#include <memory>

#include "core/failure.hpp"
#include "core/result/machines.hpp"
#include "core/text/printable.hpp"
#include "harness/program/cluster/submission.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/measuring.hpp"
#include "harness/program/run/folder/merge.hpp"
#include "harness/program/run/folder/run_folder.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

struct MergeArguments {
  std::vector<std::string> runs;
  std::string out;
  bool force = false;
  bool alike = false;
  bool no_report = false;
};

/// A merge may be repeated into its folder; no other result is replaced.
void expect_own_folder(const fs::path& out) {
  const fs::path file = out / "result.json";
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return;
  bool ours = false;
  try {
    ours = result::read_result(file).run.merged.has_value();
  } catch (const Failure&) {
    // It is not a result of ours.
  }
  if (ours) return;
  throw UsageFailure(text::quotable(file.string()) +
                     ": is there already and no merged result; --out names another folder");
}

void print_notes(const run::Merged& merged) {
  for (const std::string& difference : merged.forced) {
    std::cerr << "merged by --force: " << difference << "\n";
  }
  for (const std::string& run : merged.unfinished) std::cerr << run << "\n";
  if (merged.missing.empty()) return;
  std::cerr << "attnbench: missing:\n";
  for (const std::string& part : merged.missing) {
    std::cerr << "  " << text::quotable(part, 300) << "\n";
  }
}

run::Share share_of(const fs::path& path) {
  run::remove_left_workers(run::folder_holding(path));
  return run::read_share(path);
}

/// The runs of a submission's shards; those that never began are left out.
std::vector<run::Share> shares_of(const cluster::SubmissionFolder& folder, int jobs) {
  std::vector<run::Share> shares;
  std::error_code ignored;
  for (int index = 1; index <= jobs; ++index) {
    const run::RunFolder shard{folder.shard(index)};
    const bool begun = fs::exists(shard.journal(), ignored) || fs::exists(shard.result(), ignored);
    if (begun) shares.push_back(share_of(shard.path));
  }
  return shares;
}

/// What a merged result says of the submission that it is of.
Json account_of(const cluster::Submission& submission) {
  Json arrays = Json::array();
  for (const cluster::Submitted& one : submission.submitted) arrays.push_back(one.array);
  return {{"jobs", submission.jobs},
          {"exclusive", submission.exclusive},
          {"exclusive_reason", submission.exclusive_reason},
          {"sbatch_options", submission.options},
          {"arrays", arrays}};
}

run::Merged merged_of(const MergeArguments& arguments) {
  run::MergeChoices choices;
  choices.force = arguments.force;
  choices.alike = arguments.alike;
  choices.command = typed_command();
  if (arguments.runs.size() == 1 && cluster::holds_submission(arguments.runs.front())) {
    const cluster::SubmissionFolder folder{fs::absolute(arguments.runs.front()).lexically_normal()};
    const cluster::Submission submission = cluster::read_submission(folder);
    choices.lone = true;
    choices.submission = account_of(submission);
    return run::merge(shares_of(folder, submission.jobs), choices);
  }
  std::vector<run::Share> shares;
  for (const std::string& path : arguments.runs) shares.push_back(share_of(path));
  return run::merge(std::move(shares), choices);
}

int run_merge(const MergeArguments& arguments) {
  const fs::path out = arguments.out;
  expect_own_folder(out);
  const run::Merged merged = merged_of(arguments);
  std::error_code error;
  fs::create_directories(out, error);
  if (error) throw EnvironmentFailure(text::quotable(arguments.out) + ": " + error.message());
  result::write_result(out / "result.json", merged.result);
  for (const result::Result& part : result::by_machine(merged.result)) {
    if (merged.result.further.contains("machines")) std::cout << *part.suite.title << "\n";
    print_tables(part);
  }
  std::cout << "result  " << (out / "result.json").string() << "\n";
  if (!arguments.no_report) make_report(out, {});
  std::cout.flush();
  print_notes(merged);
  const ExitCode code = run::verdict({merged.result, out, false}, {});
  return static_cast<int>(code == ExitCode::done && !merged.missing.empty() ? ExitCode::cells
                                                                            : code);
}

}  // namespace

void declare_merge(Command& command) {
  const auto arguments = std::make_shared<MergeArguments>();
  command
      .option("RUN", arguments->runs,
              "folders of runs, or their result.json; or the folder of a submission")
      .required();
  command.option("--out", arguments->out, "folder of the merged result and its page").required();
  command.flag("--force", arguments->force,
               "merge runs of other suites, binaries, seeds or profiles, too; the result says so");
  command.flag("--alike", arguments->alike,
               "hosts with the same CPU model, threads and cards count as one machine");
  command.flag("--no-report", arguments->no_report, "no figures and no page");
  command.footer(
      "What several machines measured is drawn apart: times of two machines are not compared.\n"
      "A cell that two runs measured is an error, unless both have the same record.\n"
      "Exit codes: 0 all cells are there, 1 a cell is wrong, 2 the runs do not belong together,\n"
      "5 cells are missing (they are listed) or crashed.\n"
      "\n"
      "Example:\n"
      "  attnbench run quickstart --shard 1/2 --out one    # here\n"
      "  attnbench run quickstart --shard 2/2 --out two    # there\n"
      "  attnbench merge one two --out both");
  command.runs([arguments] { return run_merge(*arguments); });
}

}  // namespace attnbench::commands
