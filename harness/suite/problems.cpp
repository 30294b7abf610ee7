#include "harness/suite/problems.hpp"

#include "harness/errors.hpp"

namespace attnbench::suite {

void Problems::add(const std::string& place, const std::string& what) {
  const std::string message = place + what;
  if (seen_.insert(message).second) messages_.push_back(message);
}

void Problems::throw_if_any() const {
  if (messages_.empty()) return;
  std::string text;
  for (std::size_t i = 0; i < messages_.size() && i < most_shown; ++i) {
    text += (i == 0 ? "" : "\n") + messages_[i];
  }
  if (messages_.size() > most_shown) {
    text += "\n… and " + std::to_string(messages_.size() - most_shown) + " more problems";
  }
  throw UsageFailure(text);
}

}  // namespace attnbench::suite
