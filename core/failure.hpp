// The exceptions of the program, and the exit code each one ends it with.
#pragma once

#include <array>
#include <stdexcept>
#include <string>

namespace attnbench {

/// What the process tells its caller.
enum class ExitCode {
  done = 0,
  failed = 1,
  usage = 2,
  environment = 3,
  undecided = 4,
  cells = 5,
  interrupted = 130,
};

struct ExitMeaning {
  ExitCode code;
  const char* meaning;
};

/// The one table of exit codes: every help ends with it, and docs/blocks.py writes it into
/// documents.
inline constexpr std::array<ExitMeaning, 7> exit_meanings = {{
    {ExitCode::done,
     "done; disturbed, out of memory, timeout and unsupported are findings, unless --fail-on names "
     "them"},
    {ExitCode::failed, "a check failed, a cell is wrong, or what a gate holds got worse"},
    {ExitCode::usage,
     "bad command line, suite or file; nothing matched; all that was asked for is unsupported"},
    {ExitCode::environment, "the machine cannot do it, or nothing could be measured"},
    {ExitCode::undecided, "the measurement cannot tell"},
    {ExitCode::cells, "cells crashed, or ended as --fail-on names"},
    {ExitCode::interrupted, "interrupted; what was measured is kept"},
}};

/// Ends the program with `code`, after printing `what()` to standard error.
class Failure : public std::runtime_error {
 public:
  Failure(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

class UsageFailure : public Failure {
 public:
  explicit UsageFailure(const std::string& message) : Failure(ExitCode::usage, message) {}
};

class EnvironmentFailure : public Failure {
 public:
  explicit EnvironmentFailure(const std::string& message)
      : Failure(ExitCode::environment, message) {}
};

}  // namespace attnbench
