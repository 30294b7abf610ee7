#include "tasks/sections.hpp"

#include <cmath>
#include <utility>

namespace attnbench::tasks {
namespace {

int gravity(const CheckSection& section) {
  return section.verdict == "wrong" ? 2 : section.verdict == "unchecked" ? 1 : 0;
}

}  // namespace

ATTNBENCH_JSON_WRITER(CheckSection) {
  JSON_MAYBE(verdict, reason, skipped, rows, rows_not_finite, error, max_error, tolerance,
             naive_error, exact_error, rounding_error, roles, reference, dtype, after_call, mixes,
             length, lengths);
  for (const auto& [name, part] : value.parts) json.at(name.c_str(), part);
}

ATTNBENCH_JSON_WRITER(RunSections) {
  JSON_AT(chosen);
  JSON_MAYBE(memory, metrics, crossover, training, timed_check);
}

void CheckSection::mark_wrong(const std::string& why) {
  verdict = "wrong";
  reason = why;
}

void CheckSection::mark_unchecked(const std::string& why) {
  verdict = "unchecked";
  reason = "cannot be checked: " + why;
}

void CheckSection::add_part(const std::string& name, CheckSection part, const std::string& prefix) {
  if (gravity(part) > gravity(*this)) {
    verdict = part.verdict;
    reason = prefix + (part.reason.empty() ? "its values are wrong" : part.reason);
  }
  parts[name] = std::move(part);
}

CheckSection found_wrong(const std::string& reason) {
  CheckSection section;
  section.mark_wrong(reason);
  section.rows = 0;
  return section;
}

CheckSection check_skipped(const std::string& reason) {
  CheckSection section;
  section.skipped = reason;
  return section;
}

std::optional<double> if_finite(double number) {
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

CheckSection worse_of(CheckSection a, CheckSection b) {
  const auto use_of = [](const CheckSection& section) {
    return section.error.value_or(0) / section.tolerance.value_or(1);
  };
  if (gravity(a) != gravity(b)) return gravity(a) < gravity(b) ? b : a;
  return use_of(a) >= use_of(b) ? a : b;
}

}  // namespace attnbench::tasks
