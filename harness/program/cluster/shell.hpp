// What a command prints that the shell runs.
#pragma once

#include <string>
#include <vector>

namespace attnbench::cluster {

/// How a command ended.
struct CommandAnswer {
  int exit_code = 0;  ///< 1 where a signal ended it
  std::string text;   ///< both outputs, without the last line ends

  bool not_found() const { return exit_code == 127; }
};

/// Runs a program to its end, looked for on PATH. Throws EnvironmentFailure where no process can be
/// started.
CommandAnswer answer_of(const std::vector<std::string>& words);

}  // namespace attnbench::cluster
