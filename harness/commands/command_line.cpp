#include "harness/commands/command_line.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "harness/commands/suite_arguments.hpp"
#include "core/failure.hpp"
#include "core/result/record.hpp"

namespace attnbench::commands {
namespace {

std::vector<std::string> own_words() {
  std::ifstream stream("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(stream, word, '\0');) words.push_back(word);
  if (!words.empty()) words[0] = std::filesystem::path(words[0]).filename().string();
  return words;
}

std::string quoted(const std::string& word) {
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

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words) {
    if (!out.empty()) out += ' ';
    out += quoted(word);
  }
  return out;
}

bool is_one_of(const std::string& word, std::initializer_list<const char*> flags) {
  return std::any_of(flags.begin(), flags.end(), [&](const char* flag) { return word == flag; });
}

}  // namespace

std::string typed_command() { return joined(own_words()); }

std::string reproducing_command(const std::string& suite) {
  return reproducing_command(own_words(), suite);
}

std::string reproducing_command(const std::vector<std::string>& words, const std::string& suite) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::size_t equals = words[i].find('=');
    const std::string flag = words[i].substr(0, equals);
    if (is_one_of(flag, {"--no-report", "--no-ceilings", "--now"})) continue;
    if (is_one_of(flag, {"--out", "--resume", "--reuse", "--retry", "--fail-on", "--only", "--skip",
                         "--shard", "--progress", "--wait"})) {
      if (equals == std::string::npos) ++i;
      continue;
    }
    const bool other_suite = i > 0 && words[i].rfind("--", 0) != 0 &&
                             words[i - 1].rfind("--", 0) != 0 && names_suite(words[i]) &&
                             words[i] != suite;
    if (!other_suite) kept.push_back(words[i]);
  }
  return joined(kept);
}

std::set<std::string> statuses_from(const std::string& flag,
                                    const std::vector<std::string>& words) {
  const std::vector<std::string>& known = result::status_words();
  for (const std::string& word : words) {
    if (std::find(known.begin(), known.end(), word) != known.end()) continue;
    throw UsageFailure(flag + " " + word + ": expected some of " + [&] {
      std::string list;
      for (const std::string& status : known) list += (list.empty() ? "" : ", ") + status;
      return list;
    }());
  }
  return {words.begin(), words.end()};
}

}  // namespace attnbench::commands
