// The crossover task's settings, read.
#pragma once

#include <string>
#include <vector>

#include "tasks/call/settings.hpp"
#include "tasks/crossover/search.hpp"

namespace attnbench::tasks::crossover {

/// What `against` says where it names nobody.
inline constexpr const char* fastest_exact = "fastest_exact";

struct Settings {
  Range range;
  double round_seconds = 0;
  Cell mechanism;           ///< as the suite names it
  std::vector<Cell> exact;  ///< the forms of attention it may have to overtake
};

std::vector<Option> declared_settings();

/// Throws UsageError for lengths that contradict each other and for an `against` that names nothing
/// the registry has.
Settings settings_from(const Registry& registry, const Cell& cell);

/// What is timed at one length.
call::Settings call_at(const Cell& cell, std::int64_t length);

}  // namespace attnbench::tasks::crossover
