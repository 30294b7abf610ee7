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

  bool alone() const { return size == 1; }
};

/// A variable of the environment; nothing where it is not set.
using Variable = std::function<std::optional<std::string>(const char* name)>;

/// torchrun says RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, and listens at that port itself, so
/// the next one is taken. srun says SLURM_PROCID and SLURM_STEP_NUM_TASKS; where MASTER_ADDR and
/// MASTER_PORT are not set, the first listens on the node that launched, at a port that follows
/// from the job's number. Throws UsageFailure for variables that make no sense.
Seat seat_from(const Variable& variable);
Seat seat_from_environment();

/// {rank, size, address, port}.
nlohmann::json to_json(const Seat& seat);

}  // namespace attnbench::run
