#include "core/text/shell.hpp"

namespace attnbench::text {

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

std::optional<std::vector<std::string>> words_of_command(const std::string& command) {
  std::vector<std::string> words;
  bool quoted = false, within = false;  // within a word, which may be empty
  for (std::size_t i = 0; i < command.size(); ++i) {
    const char letter = command[i];
    if (!quoted && letter == ' ') {
      within = false;
      continue;
    }
    if (!within) words.emplace_back();
    within = true;
    if (letter == '\'') {
      quoted = !quoted;
    } else if (!quoted && letter == '\\' && i + 1 < command.size()) {
      words.back() += command[++i];
    } else {
      words.back() += letter;
    }
  }
  if (quoted) return std::nullopt;
  return words;
}

}  // namespace attnbench::text
