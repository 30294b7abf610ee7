#include "harness/program/cluster/slurm.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "core/failure.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "core/text/shell.hpp"
#include "harness/program/cluster/shell.hpp"

namespace attnbench::cluster {
namespace {

std::vector<std::string> array_command(const SubmissionFolder& folder,
                                       const std::vector<int>& shards) {
  return {"sbatch", "--parsable", "--array=" + array_text(shards), folder.shard_script().string()};
}

std::vector<std::string> merge_command(const SubmissionFolder& folder, const std::string& array) {
  return {"sbatch", "--parsable", "--dependency=afterany:" + array, folder.merge_script().string()};
}

/// The job's number: "--parsable" prints it, with the cluster's name where there are several.
std::string submitted_job(const std::vector<std::string>& command) {
  const CommandAnswer answer = answer_of(command);
  if (answer.not_found()) {
    throw EnvironmentFailure(
        "sbatch is not here: submit from a machine with Slurm, or write the scripts alone with "
        "--dry-run");
  }
  const std::size_t line = answer.text.rfind('\n');
  const std::string last = line == std::string::npos ? answer.text : answer.text.substr(line + 1);
  const std::string job = last.substr(0, last.find(';'));
  const bool digits = !job.empty() && std::all_of(job.begin(), job.end(), [](char letter) {
    return std::isdigit(static_cast<unsigned char>(letter));
  });
  if (answer.exit_code == 0 && digits) return job;
  throw EnvironmentFailure("Slurm did not take the job (" + text::shell_words(command) +
                           "): " + text::quotable(answer.text, 600));
}

}  // namespace

void submit(Submission& submission, const SubmissionFolder& folder,
            const std::vector<int>& shards) {
  Submitted one;
  one.array = submitted_job(array_command(folder, shards));
  one.shards = shards;
  one.at = text::now_text();
  submission.submitted.push_back(one);
  write_submission(folder, submission);
  submission.submitted.back().merge = submitted_job(merge_command(folder, one.array));
  write_submission(folder, submission);
}

std::vector<std::string> submit_commands(const SubmissionFolder& folder,
                                         const std::vector<int>& shards) {
  return {text::shell_words(array_command(folder, shards)),
          text::shell_words(merge_command(folder, "JOB"))};
}

std::optional<Queue> ask_queue(const Submission& submission, std::string& why) {
  Queue queue;
  for (const Submitted& one : submission.submitted) {
    const CommandAnswer answer =
        answer_of({"squeue", "-h", "-r", "-j", one.array, "-o", "%i|%T|%R"});
    if (answer.not_found()) {
      why = "squeue is not here";
      return std::nullopt;
    }
    // Slurm forgets jobs some minutes after their end.
    const bool forgotten = answer.text.find("Invalid job id") != std::string::npos;
    if (answer.exit_code != 0 && !forgotten) {
      why = "squeue: " + text::quotable(answer.text, 300);
      return std::nullopt;
    }
    for (auto& [shard, task] : queue_from(answer.text)) queue[shard] = std::move(task);
  }
  return queue;
}

}  // namespace attnbench::cluster
