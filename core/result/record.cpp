#include "core/result/record.hpp"

#include <algorithm>

namespace attnbench::result {

const std::vector<std::string>& status_words() {
  static const std::vector<std::string> words{"ok",          "wrong",   "disturbed",
                                              "unsupported", "skipped", "out_of_memory",
                                              "timeout",     "crashed", "error"};
  return words;
}

const char* to_string(Status status) {
  return status_words()[static_cast<std::size_t>(status)].c_str();
}

std::optional<Status> status_from(const std::string& word) {
  const auto& words = status_words();
  const auto found = std::find(words.begin(), words.end(), word);
  if (found == words.end()) return std::nullopt;
  return static_cast<Status>(found - words.begin());
}

}  // namespace attnbench::result
