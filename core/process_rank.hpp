// ProcessRank: the rank of this process among those that torchrun or srun started to train one
// model together.
#pragma once

#include <string>

namespace attnbench {

/// The rank of a process in its group, as torchrun states it: RANK, WORLD_SIZE, MASTER_ADDR,
/// MASTER_PORT. Rank 0 writes the run, the others only what they need themselves.
struct ProcessRank {
  int rank = 0;
  int size = 1;         ///< processes in the group
  std::string address;  ///< where rank 0 listens
  int port = 0;
  /// Processes of the group on this machine, this one included: they share its cores. Not sent to
  /// the worker.
  int on_this_machine = 1;

  bool alone() const { return size == 1; }
  bool writes_the_run() const { return rank == 0; }
};

}  // namespace attnbench
