// The rank of this process, from the environment that torchrun or srun gives it.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "core/process_rank.hpp"

namespace attnbench::run {

/// A variable of the environment; nothing where it is not set.
using Variable = std::function<std::optional<std::string>(const char* name)>;

/// Reads the rank from what the launcher sets. torchrun sets RANK, WORLD_SIZE, MASTER_ADDR and
/// MASTER_PORT, and listens at that port itself, so the next one is taken. srun sets SLURM_PROCID
/// and SLURM_STEP_NUM_TASKS; where MASTER_ADDR and MASTER_PORT are not set, rank 0 listens on the
/// step's first node, where Slurm puts it, at a port that follows from the job's number. The
/// processes on this machine are LOCAL_WORLD_SIZE, or this node's entry in
/// SLURM_STEP_TASKS_PER_NODE. Throws UsageFailure for values that make no sense.
ProcessRank process_rank_from(const Variable& variable);
/// Reads the rank from the environment of this process. Also throws UsageFailure where the address
/// is of no known machine.
ProcessRank process_rank_from_environment();

/// The default number of threads: this process's share of the cores, or all that it may run on
/// where its launcher has bound it to some.
int threads_for(const ProcessRank& process_rank);

}  // namespace attnbench::run
