#include "harness/run/supervise/settings.hpp"

namespace attnbench::run {

ExitCode verdict(const RunOutcome& outcome, const std::set<std::string>& fail_on) {
  if (outcome.interrupted) return ExitCode::interrupted;
  std::set<std::string> found;
  for (const Json& cell : outcome.result.at("attnbench").at("cells")) {
    found.insert(cell.value("status", "error"));
  }
  if (found.count("wrong") != 0) return ExitCode::failed;
  for (const std::string& status : found) {
    if (status == "crashed" || status == "error" || fail_on.count(status) != 0) {
      return ExitCode::cells;
    }
  }
  return ExitCode::done;
}

}  // namespace attnbench::run
