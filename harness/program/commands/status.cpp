// attnbench status FOLDER: how far a submission is, from its journals and Slurm's queue.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <sstream>
#include <thread>
#include <vector>

#include "core/failure.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "core/text/shell.hpp"
#include "harness/program/cluster/slurm.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/terminal.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;
using cluster::ShardProgress;

struct StatusArguments {
  std::string folder;
  bool watch = false;
  double every = 5;
};

/// "12 ok, 1 crashed, 3 open".
std::string cells_text(const std::map<std::string, std::size_t>& cells) {
  std::string text;
  for (const auto& [status, count] : cells) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + status;
  }
  return text.empty() ? "no cells" : text;
}

std::map<std::string, std::size_t> all_cells(const std::vector<ShardProgress>& shards) {
  std::map<std::string, std::size_t> all;
  for (const ShardProgress& shard : shards) {
    for (const auto& [status, count] : shard.cells) all[status] += count;
  }
  return all;
}

/// "3 running, 1 finished".
std::string states_text(const std::vector<ShardProgress>& shards) {
  std::map<std::string, std::size_t> states;
  for (const ShardProgress& shard : shards) ++states[shard.state];
  return cells_text(states);
}

struct Look {
  std::string text;
  bool at_work = false;
  bool finished = false;
};

Look look_at(const cluster::Submission& submission, const cluster::SubmissionFolder& folder) {
  std::string why;
  const auto queue = cluster::ask_queue(submission, why);
  const auto shards = cluster::progress_of(submission, folder, queue);
  Look out;
  out.finished = true;
  std::ostringstream text;
  text << submission.suite << ", " << submission.jobs
       << (submission.jobs == 1 ? " shard: " : " shards: ") << states_text(shards) << "\n";
  std::vector<TableRow> rows{{"shard", "state", "cells", ""}};
  for (const ShardProgress& shard : shards) {
    out.at_work = out.at_work || shard.at_work();
    out.finished = out.finished && shard.finished();
    rows.push_back({std::to_string(shard.index), shard.state, cells_text(shard.cells),
                    text::quotable(shard.reason)});
  }
  print_columns(text, rows, "  ");
  text << "cells: " << cells_text(all_cells(shards)) << "\n";
  if (const auto pace = cluster::pace_of(shards); pace && out.at_work) {
    std::ostringstream rate;
    rate.precision(3);
    rate << pace->rounds_per_minute;
    text << rate.str() << " rounds a minute; the longest shard in the queue needs about "
         << text::human_seconds(pace->seconds_left) << " more of its own time\n";
  }
  if (!queue)
    text << "Slurm's queue is not known (" << why << "): states are from the folders alone\n";
  std::error_code ignored;
  if (fs::exists(folder.merged() / "result.json", ignored)) {
    text << "merged: " << (folder.merged() / "result.json").string() << "\n";
  }
  if (!out.finished && !out.at_work && queue) {
    text << "nothing is at work: attnbench submit --again "
         << text::shell_word(folder.path.string()) << "; what tasks printed is in "
         << folder.logs().string() << "\n";
  }
  out.text = text.str();
  return out;
}

int run_status(const StatusArguments& arguments) {
  const cluster::SubmissionFolder folder{fs::absolute(arguments.folder).lexically_normal()};
  while (true) {
    const Look now = look_at(cluster::read_submission(folder), folder);
    std::cout << now.text << std::flush;
    if (!arguments.watch || !now.at_work) {
      const bool lacking = !now.finished && !now.at_work;
      return static_cast<int>(lacking ? ExitCode::cells : ExitCode::done);
    }
    std::cout << "\n";
    std::this_thread::sleep_for(std::chrono::duration<double>(arguments.every));
  }
}

}  // namespace

void declare_status(Command& command) {
  const auto arguments = std::make_shared<StatusArguments>();
  command.option("FOLDER", arguments->folder, "the folder of attnbench submit").required();
  command.flag("--watch", arguments->watch, "show it again until nothing is at work");
  command.option("--every", arguments->every, "seconds between two looks")
      .positive_seconds()
      .shows_default();
  command.footer(
      "Cells are counted from the shards' journals, tasks from squeue; nothing else is asked.\n"
      "Exit codes: 0 finished or at work, 5 shards are not finished and nothing is at work.");
  command.runs([arguments] { return run_status(*arguments); });
}

}  // namespace attnbench::commands
