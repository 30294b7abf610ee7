// The shell: words quoted for it, and what a command that it runs prints.
#pragma once

#include <string>
#include <vector>

namespace attnbench::cluster {

/// A word for a POSIX shell, quoted where it must be.
std::string shell_word(const std::string& word);
std::string shell_words(const std::vector<std::string>& words);

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
