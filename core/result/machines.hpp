// A result that was merged from runs on several machines: which cell was measured where, and the
// part of each machine as a result of its own.
//
// Such a result has "machines" beside its cells: {NAME: {machine, ceilings, provenance, threads,
// started_at, finished_at, hosts}}, and each of its cells has "machine", the NAME. The parts that
// every result has (machine, ceilings, provenance) are then those of the first of them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/result/document.hpp"

namespace attnbench::result {

/// One machine's part of a merged result.
struct MachinePart {
  std::string name;
  MachineCard machine;
  std::map<std::string, Values> ceilings;
  Provenance provenance;
  std::optional<int> threads;
  std::string started_at;
  std::string finished_at;
  std::vector<std::string> hosts;
  Values further;
};
ATTNBENCH_DESCRIBED(MachinePart);

/// Writes "machines" into a result; each cell names its machine itself.
void set_machines(Result& result, const std::vector<MachinePart>& machines);
void set_machine(CellRecord& cell, const std::string& name);
/// The name of the machine that measured the cell; empty in a result of one machine.
std::string machine_of(const CellRecord& cell);

/// A result of each machine, in the order of their names, its title with the machine's name; the
/// result itself where there is one. Cells that no machine measured are the first's. Throws
/// SchemaError where "machines" is not of its form.
std::vector<Result> by_machine(Result result);

}  // namespace attnbench::result
