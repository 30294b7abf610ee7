#include "harness/program/cluster/shell.hpp"

#include <sys/wait.h>

#include <array>
#include <cstdio>

#include "core/failure.hpp"
#include "core/text/shell.hpp"

namespace attnbench::cluster {

CommandAnswer answer_of(const std::vector<std::string>& words) {
  std::FILE* const pipe = popen((text::shell_words(words) + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw EnvironmentFailure("no process could be started");
  CommandAnswer answer;
  std::array<char, 4096> block{};
  while (std::fgets(block.data(), block.size(), pipe) != nullptr) answer.text += block.data();
  const int status = pclose(pipe);
  answer.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
  while (!answer.text.empty() && answer.text.back() == '\n') answer.text.pop_back();
  return answer;
}

}  // namespace attnbench::cluster
