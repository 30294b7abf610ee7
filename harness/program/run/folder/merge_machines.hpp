// Which runs of a merge were made on one machine, and the part of each machine in the result.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "core/result/machines.hpp"
#include "harness/program/run/folder/merge.hpp"

namespace attnbench::run {

/// The machines of the runs that have cells. Runs count as made on one machine where host, CPU
/// model, number of threads and cards are the same; with `alike` the host and all of a card but its
/// name may differ.
class MergedMachines {
 public:
  MergedMachines(const std::vector<Share>& shares, bool alike);

  /// The machines' parts in the order of their first runs, with names that differ.
  const std::vector<result::MachinePart>& parts() const { return parts_; }
  /// The machine of a run that has cells, by the run's place among the shares.
  const std::string& name_of(std::size_t share) const { return parts_[of_share_.at(share)].name; }

 private:
  void add(const result::Result& one, bool alike);

  std::vector<result::MachinePart> parts_;
  std::map<std::size_t, std::size_t> of_share_;
};

}  // namespace attnbench::run
