// The exceptions of the program, and the exit code each one ends it with.
#pragma once

#include <stdexcept>
#include <string>

namespace attnbench {

/// What the process tells its caller. The README's table is written from this one.
enum class ExitCode {
  done = 0,           ///< out of memory, timeout and unsupported are findings, not failures
  failed = 1,         ///< a check failed, a cell is wrong, a regression
  usage = 2,          ///< bad command line or suite, nothing matched
  environment = 3,    ///< the machine cannot do it: no worker, disk full, device not usable
  undecided = 4,      ///< the measurement cannot tell
  cells = 5,          ///< cells of a status named by --fail-on, or crashed
  interrupted = 130,  ///< Ctrl-C; what was measured is kept
};

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
