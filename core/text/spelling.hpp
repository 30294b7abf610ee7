// Spelling: the nearest valid word, for messages about a wrong one.
#pragma once

#include <string>
#include <vector>

namespace attnbench::text {

/// The word of `known` with the smallest edit distance to `word` (letter case apart), or empty if
/// none is nearer than a third of its length.
std::string nearest_word(const std::string& word, const std::vector<std::string>& known);

/// A hint at valid words: "did you mean \"x\"?" or, where nothing is near, "there are: a, b, c" (at
/// most a dozen).
std::string suggestion(const std::string& word, const std::vector<std::string>& known);

/// The words as a list: "a, b, c", or "none".
std::string listed(const std::vector<std::string>& words);

}  // namespace attnbench::text
