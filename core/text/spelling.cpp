#include "core/text/spelling.hpp"

#include <algorithm>
#include <cctype>
#include <numeric>

#include "core/text/printable.hpp"

namespace attnbench::text {
namespace {

std::string lower_case(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Insertions, deletions, replacements and swaps of neighbours count 1 each.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    before = last;
    last = now;
  }
  return last[b.size()];
}

}  // namespace

std::string nearest_word(const std::string& word, const std::vector<std::string>& known) {
  if (word.size() > 100) return {};
  const std::string wanted = lower_case(word);
  std::string nearest;
  std::size_t least = std::max<std::size_t>(1, wanted.size() / 3) + 1;
  for (const std::string& candidate : known) {
    const std::size_t distance = edit_distance(wanted, lower_case(candidate));
    if (distance < least) {
      least = distance;
      nearest = candidate;
    }
  }
  if (!nearest.empty() || wanted.size() < 4) return nearest;
  // "latents" is far from "latents_total" in letters, and yet what was meant.
  for (const std::string& candidate : known) {
    if (lower_case(candidate).rfind(wanted, 0) == 0) return candidate;
  }
  return {};
}

std::string listed(const std::vector<std::string>& words) {
  constexpr std::size_t most = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(words.size(), most); ++i) {
    text += (i == 0 ? "" : ", ") + quotable(words[i], 60);
  }
  if (words.size() > most) text += ", … (" + std::to_string(words.size()) + " in all)";
  return text.empty() ? "none" : text;
}

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(word, known);
  if (!nearest.empty()) return "did you mean \"" + quotable(nearest) + "\"?";
  return "there are: " + listed(known);
}

}  // namespace attnbench::text
