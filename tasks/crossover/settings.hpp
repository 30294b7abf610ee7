// The settings of the crossover task.
#pragma once

#include <string>
#include <vector>

#include "tasks/call/settings.hpp"
#include "tasks/crossover/search.hpp"

namespace attnbench::tasks::crossover {

/// The value of `against` for the fastest exact form.
inline constexpr const char* fastest_exact = "fastest_exact";

struct CrossoverSettings {
  Range range;
  double round_seconds = 0;
  ResolvedCell mechanism;           ///< as in the suite
  std::vector<ResolvedCell> exact;  ///< the exact forms it is compared with
};

std::vector<Option> declared_settings();

/// Throws UsageError for a minimum that is not below the maximum and for an `against` that the
/// registry does not have.
CrossoverSettings settings_from(const Registry& registry, const ResolvedCell& cell);

/// The settings of the timed call at one length.
call::CallSettings call_at(const ResolvedCell& cell, std::int64_t length);

}  // namespace attnbench::tasks::crossover
