// What a verdict leaves open, and the cells whose further rounds may settle it.
#pragma once

#include <string>
#include <vector>

#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::verdict {

struct Undecided {
  std::string words;               ///< "which of flash and latte is fastest at length 1024"
  std::vector<std::string> cells;  ///< ids, without duplicates
};

/// Times whose ratio is known to be that near to 1 are equal: more rounds of them settle nothing.
inline constexpr double equal_share = 0.02;

/// What more rounds may settle: which cell is fastest at a place, whether one is faster than exact
/// attention there, and the times that other programs disturbed. `verdict` is that of `input`.
std::vector<Undecided> undecided_of(const VerdictInput& input, const Verdict& verdict);

}  // namespace attnbench::reports::verdict
