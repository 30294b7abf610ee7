#include "harness/program/cluster/shell.hpp"

#include <sys/wait.h>

#include <array>
#include <cstdio>

#include "core/failure.hpp"

namespace attnbench::cluster {

std::string shell_word(const std::string& word) {
  const char* plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string out = "'";
  for (const char letter : word) {
    if (letter == '\'') {
      out += "'\\''";
    } else {
      out += letter;
    }
  }
  return out + "'";
}

std::string shell_words(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    out += shell_word(word);
  }
  return out;
}

CommandAnswer answer_of(const std::vector<std::string>& words) {
  std::FILE* const pipe = popen((shell_words(words) + " 2>&1").c_str(), "r");
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
