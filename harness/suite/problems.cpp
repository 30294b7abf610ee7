#include "harness/suite/problems.hpp"

#include "core/failure.hpp"
#include "core/text/printable.hpp"

namespace attnbench::suite {

void Problems::add(const std::string& place, const std::string& what) {
  constexpr std::size_t longest_place = 300;
  constexpr std::size_t longest_sentence = 700;
  const std::string message =
      result::quotable(place, longest_place) + result::quotable(what, longest_sentence);
  if (seen_.insert(message).second) messages_.push_back(message);
}

void Problems::throw_if_any() const {
  if (messages_.empty()) return;
  std::string text;
  std::size_t shown = 0;
  while (shown < messages_.size() && shown < most_shown &&
         text.size() + messages_[shown].size() < most_bytes) {
    text += (shown == 0 ? "" : "\n") + messages_[shown];
    ++shown;
  }
  if (messages_.size() > shown) {
    text += "\n… and " + std::to_string(messages_.size() - shown) + " more problems";
  }
  throw UsageFailure(text);
}

}  // namespace attnbench::suite
