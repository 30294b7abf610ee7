#include "harness/program/run/supervise/settings.hpp"

#include <algorithm>

namespace attnbench::run {

bool measured_nothing(const result::Result& result) {
  // A share of a suite may well hold nothing that fits.
  if (result.cells.empty() || result.run.shard) return false;
  return std::none_of(result.cells.begin(), result.cells.end(), [](const auto& cell) {
    return cell.status == Status::ok || cell.status == Status::wrong || result::is_disturbed(cell);
  });
}

ExitCode verdict(const RunOutcome& outcome, const std::set<std::string>& fail_on) {
  if (outcome.interrupted) return ExitCode::interrupted;
  std::set<Status> found;
  for (const result::CellRecord& cell : outcome.result.cells) found.insert(cell.status);
  if (found.contains(Status::wrong)) return ExitCode::failed;
  for (const Status status : found) {
    if (status == Status::crashed || status == Status::error ||
        fail_on.contains(to_string(status))) {
      return ExitCode::cells;
    }
  }
  if (measured_nothing(outcome.result)) {
    return found == std::set<Status>{Status::unsupported} ? ExitCode::usage : ExitCode::environment;
  }
  return ExitCode::done;
}

}  // namespace attnbench::run
