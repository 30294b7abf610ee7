// A submission: a suite as an array of Slurm jobs, one shard a task, and a job that merges them.
//
//   FOLDER/submission.json   what was asked for, and each submission to Slurm
//   FOLDER/shard.sh          the script of a task
//   FOLDER/merge.sh          the script of the merge
//   FOLDER/setup.sh          sourced by both before anything runs; the user's own
//   FOLDER/shards/I          the run of shard I, which a task that starts again resumes
//   FOLDER/logs              what the jobs print
//   FOLDER/merged            the merged result, its page and tables
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/json_object.hpp"

namespace attnbench::cluster {

constexpr int submission_schema = 1;

/// A cell of the suite, as the submission counts them.
struct SubmittedCell {
  std::string id;
  int rounds = 0;  ///< 0: it will not run
};

/// One call of submit: its job array and the merge after it.
struct Submitted {
  std::string array;  ///< Slurm's number of the job
  std::string merge;  ///< empty where the merge could not be submitted
  std::vector<int> shards;
  std::string at;
};

struct Submission {
  int schema = submission_schema;
  std::string suite;             ///< its name
  std::string program;           ///< the path of attnbench
  std::string binary;            ///< fingerprint of the worker and the plugins
  std::string started_in;        ///< the folder that paths on the command line are relative to
  std::vector<std::string> run;  ///< words of `attnbench run`, without folder and shard
  int jobs = 0;
  bool exclusive = false;
  std::string exclusive_reason;
  std::vector<std::string> options;  ///< of sbatch, each with its dashes
  bool setup = false;                ///< there is a setup.sh
  std::vector<std::string> retry;    ///< statuses whose cells a resumed task measures again
  std::vector<SubmittedCell> cells;
  std::vector<Submitted> submitted;
};

ATTNBENCH_JSON(SubmittedCell);
ATTNBENCH_JSON(Submitted);
ATTNBENCH_JSON(Submission);

/// Where a submission's files are.
struct SubmissionFolder {
  std::filesystem::path path;  ///< absolute

  std::filesystem::path record() const { return path / "submission.json"; }
  std::filesystem::path shard_script() const { return path / "shard.sh"; }
  std::filesystem::path merge_script() const { return path / "merge.sh"; }
  std::filesystem::path setup() const { return path / "setup.sh"; }
  std::filesystem::path logs() const { return path / "logs"; }
  std::filesystem::path shard(int index) const { return path / "shards" / std::to_string(index); }
  std::filesystem::path merged() const { return path / "merged"; }
};

/// Whether the folder holds a submission.
bool holds_submission(const std::filesystem::path& folder);
/// Throws UsageFailure where there is none, or a damaged one.
Submission read_submission(const SubmissionFolder& folder);
/// Throws EnvironmentFailure.
void write_submission(const SubmissionFolder& folder, const Submission& submission);

/// An option of sbatch from what the user typed, "partition=long" or "--partition=long" or
/// "-plong". Throws UsageFailure for one that the scripts need for themselves, and for a line
/// break.
std::string sbatch_option(const std::string& typed);

/// The scripts. A task whose folder is not there, as on a node that does not see it, ends with 3.
/// Throw UsageFailure for a path or name that no line of sbatch can hold: with a line break.
std::string shard_script(const Submission& submission, const SubmissionFolder& folder);
std::string merge_script(const Submission& submission, const SubmissionFolder& folder);

/// Indices as an option of --array takes them: "1-3,7".
std::string array_text(const std::vector<int>& shards);

}  // namespace attnbench::cluster
