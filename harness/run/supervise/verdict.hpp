// Verdict: the exit code that a run ends with.
#pragma once

#include <set>
#include <string>

#include "core/failure.hpp"
#include "harness/run/supervise/settings.hpp"

namespace attnbench::run {

/// 130 interrupted; 1 where a cell is wrong; 5 where one crashed, ended with an error or has a
/// status of `fail_on`; else 0: disturbed, out of memory, timeout, unsupported and skipped are
/// findings.
ExitCode verdict(const RunOutcome& outcome, const std::set<std::string>& fail_on);

}  // namespace attnbench::run
