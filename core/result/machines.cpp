#include "core/result/machines.hpp"

#include <algorithm>

namespace attnbench::result {

ATTNBENCH_DESCRIBED_CODEC(MachinePart) {
  JSON_KEY(at, name, "the \"machine\" of its cells");
  JSON_AT(machine);
  JSON_KEY(usual, ceilings, "", Rule::rates);
  JSON_USUAL(provenance);
  JSON_MAYBE(threads, started_at, finished_at);
  JSON_KEY(maybe, hosts, "all that count as this machine");
  JSON_REST;
}

void set_machines(Result& result, const std::vector<MachinePart>& machines) {
  result.further["machines"] = machines;
}

void set_machine(CellRecord& cell, const std::string& name) { cell.further["machine"] = name; }

std::string machine_of(const CellRecord& cell) {
  const Json* const name = find_value(cell.further, "machine");
  return name != nullptr && name->is_string() ? name->get<std::string>() : std::string();
}

std::vector<Result> by_machine(Result result) {
  std::vector<MachinePart> machines;
  if (const Json* const found = find_value(result.further, "machines")) {
    detail::read_member("machines", *found, machines);
  }
  if (machines.size() < 2) return {std::move(result)};
  const std::vector<CellRecord> cells = std::move(result.cells);
  result.cells.clear();
  result.further.erase("machines");
  std::vector<Result> parts;
  for (const MachinePart& machine : machines) {
    Result part = result;
    part.suite.title = part.suite.title.value_or(part.suite.name) + ", on " + machine.name;
    part.machine = machine.machine;
    part.ceilings = machine.ceilings;
    part.provenance = machine.provenance;
    part.run.threads = machine.threads;
    part.run.started_at = machine.started_at;
    part.run.finished_at = machine.finished_at;
    parts.push_back(std::move(part));
  }
  for (const CellRecord& cell : cells) {
    const std::string name = machine_of(cell);
    const auto own = std::find_if(machines.begin(), machines.end(),
                                  [&](const auto& machine) { return machine.name == name; });
    const auto at = own == machines.end() ? 0 : own - machines.begin();
    parts[static_cast<std::size_t>(at)].cells.push_back(cell);
  }
  return parts;
}

}  // namespace attnbench::result
