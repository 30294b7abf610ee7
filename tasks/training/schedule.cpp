#include "tasks/training/schedule.hpp"

#include <algorithm>
#include <cmath>

#include "core/errors.hpp"

namespace attnbench::tasks::learning {
namespace {

constexpr std::pair<const char*, Schedule> table[] = {
    {"constant", Schedule::constant},
    {"cosine", Schedule::cosine},
    {"cosine_by_epoch", Schedule::cosine_by_epoch},
    {"linear", Schedule::linear},
    {"inverse_square_root", Schedule::inverse_square_root},
    {"drop", Schedule::drop}};

double half_cosine(double share) { return (1 + std::cos(M_PI * share)) / 2; }

}  // namespace

const char* to_string(Schedule schedule) {
  for (const auto& [word, value] : table) {
    if (value == schedule) return word;
  }
  return "";
}

std::vector<std::string> schedule_words() {
  std::vector<std::string> words;
  for (const auto& [word, value] : table) words.emplace_back(word);
  return words;
}

Schedule schedule_from(const std::string& word) {
  std::string known;
  for (const auto& [one, value] : table) {
    if (word == one) return value;
    known += (known.empty() ? "" : ", ") + std::string(one);
  }
  throw UsageError("schedule must be one of " + known + ", not \"" + word + "\"");
}

double Course::factor(std::int64_t step) const {
  const auto at = static_cast<double>(step);
  const auto warm = static_cast<double>(warm_up_steps);
  if (step < warm_up_steps) return (at + 1) / warm;
  const double share = (at - warm) / std::max(1.0, static_cast<double>(steps()) - warm);
  switch (schedule) {
    case Schedule::constant:
      return 1;
    case Schedule::cosine:
      return half_cosine(share);
    case Schedule::cosine_by_epoch:
      return half_cosine(static_cast<double>(step / steps_per_epoch) / static_cast<double>(epochs));
    case Schedule::linear:
      return 1 - share;
    case Schedule::inverse_square_root:
      return std::sqrt(std::max(1.0, warm) / (at + 1));
    case Schedule::drop:
      return step < drop_after ? 1 : 0.1;
  }
  return 1;
}

}  // namespace attnbench::tasks::learning
