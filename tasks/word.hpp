// Settings that are one of a few words.
#pragma once

#include <initializer_list>
#include <string>

#include "core/errors.hpp"

namespace attnbench::tasks {

/// The one of `words` that to_string, found beside its type, calls `said`. Throws UsageError, which
/// names the setting and all its words.
template <class Word>
Word word_from(const char* setting, std::initializer_list<Word> words, const std::string& said) {
  std::string known;
  for (const Word word : words) {
    if (said == to_string(word)) return word;
    known += (known.empty() ? "" : ", ") + std::string(to_string(word));
  }
  throw UsageError(std::string(setting) + " must be one of " + known + ", not \"" + said + "\"");
}

}  // namespace attnbench::tasks
