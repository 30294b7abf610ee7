#include "reports/tables/missing.hpp"

#include <algorithm>
#include <utility>

#include "core/text/printable.hpp"

namespace attnbench::reports {
namespace {

/// A status, and whether it says only that the output could not be checked.
using Fate = std::pair<Status, bool>;

Fate fate_of(const Missing& one) { return {one.status, one.unchecked}; }

const char* words_of(Status status) {
  switch (status) {
    case Status::ok:
      return "timed in one process alone";
    case Status::wrong:
      return "wrong";
    case Status::disturbed:
      return "disturbed";
    case Status::unsupported:
      return "unsupported";
    case Status::skipped:
      return "skipped";
    case Status::out_of_memory:
      return "out of memory";
    case Status::timeout:
      return "ended by the time limit";
    case Status::crashed:
      return "ended by a crash";
    case Status::error:
      return "ended by an error";
  }
  return "";
}

/// Whether `one` is above `bound` by what is known of it at smaller places.
bool is_above(const std::vector<Entrant>& all, const Entrant& one, double bound) {
  return std::any_of(all.begin(), all.end(), [&](const Entrant& other) {
    const bool smaller = other.series == one.series && other.x && one.x && *other.x < *one.x;
    return smaller &&
           (other.status == Status::out_of_memory || (other.value && other.value->low > bound));
  });
}

}  // namespace

MissingAt missing_at(const std::vector<Entrant>& all, const std::optional<double>& x, double bound,
                     bool rises) {
  MissingAt missing;
  for (const Entrant& one : all) {
    const bool enters = one.status != Status::unsupported && one.status != Status::out_of_memory;
    if (one.x != x || one.value || !enters) continue;
    const bool above = rises && is_above(all, one, bound);
    (above ? missing.above : missing.below).push_back({one.series, one.status, one.unchecked});
  }
  return missing;
}

std::string missing_words(const std::vector<Missing>& missing) {
  std::vector<std::pair<Fate, std::vector<std::string>>> fates;
  for (const Missing& one : missing) {
    const auto known = std::find_if(fates.begin(), fates.end(),
                                    [&](const auto& fate) { return fate.first == fate_of(one); });
    std::vector<std::string>& names =
        known == fates.end() ? fates.emplace_back(fate_of(one), std::vector<std::string>{}).second
                             : known->second;
    const std::string name = text::name_in_sentence(one.series);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string text;
  for (const auto& [fate, names] : fates) {
    text += text.empty() ? "" : "; ";
    if (fate.second) text += names.size() == 1 ? "the output of " : "the outputs of ";
    for (std::size_t i = 0; i < names.size(); ++i) {
      text += (i == 0 ? "" : i + 1 == names.size() ? " and " : ", ") + names[i];
    }
    text += fate.second
                ? " could not be checked"
                : (names.size() == 1 ? " was " : " were ") + std::string(words_of(fate.first));
  }
  return text;
}

}  // namespace attnbench::reports
