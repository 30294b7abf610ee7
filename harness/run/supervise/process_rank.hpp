// Seat: the place of this program among those that torchrun or srun started to train together.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

namespace attnbench::run {

struct Seat {
  int rank = 0;  ///< the first writes the run, the others what they need for themselves
  int size = 1;
  std::string address;  ///< where the first listens
  int port = 0;
  int on_this_machine = 1;  ///< processes of these, this one included, that share its cores

  bool alone() const { return size == 1; }
};

/// A variable of the environment; nothing where it is not set.
using Variable = std::function<std::optional<std::string>(const char* name)>;

/// torchrun says RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and listens at that port itself, so
/// the next one is taken. srun says SLURM_PROCID and SLURM_STEP_NUM_TASKS; where MASTER_ADDR and
/// MASTER_PORT are not set, the first listens on the step's first node, where Slurm puts it, at a
/// port that follows from the job's number. How many share a machine is LOCAL_WORLD_SIZE, or this
/// node's place in SLURM_STEP_TASKS_PER_NODE. Throws UsageFailure for variables that make no sense.
Seat seat_from(const Variable& variable);
/// The same from the environment of this process. Also throws UsageFailure where the address is of
/// no machine that is known here.
Seat seat_from_environment();

/// The threads that a process takes where nobody said how many: its share of the cores, or all that
/// it may run on where whoever started it has bound it to some.
int threads_for(const Seat& seat);

/// {rank, size, address, port}.
nlohmann::json to_json(const Seat& seat);

}  // namespace attnbench::run
