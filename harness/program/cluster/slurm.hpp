// Slurm's own programs: sbatch, squeue. Their answers are text in their own wording.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "harness/program/cluster/progress.hpp"
#include "harness/program/cluster/submission.hpp"

namespace attnbench::cluster {

/// Submits the shards as a job array and the merge after them, and notes both in `submission` and
/// its record. Throws EnvironmentFailure with sbatch's words; what was submitted before stays
/// noted.
void submit(Submission& submission, const SubmissionFolder& folder, const std::vector<int>& shards);

/// The commands that `submit` would call.
std::vector<std::string> submit_commands(const SubmissionFolder& folder,
                                         const std::vector<int>& shards);

/// The tasks of all arrays of the submission that are in the queue; nothing where squeue is not
/// here or does not answer, which `why` then says.
std::optional<Queue> ask_queue(const Submission& submission, std::string& why);

}  // namespace attnbench::cluster
