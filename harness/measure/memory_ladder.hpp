// Measures the memory ladder of this machine.
#pragma once

#include <vector>

#include "core/memory_ladder.hpp"

namespace attnbench::measure {

/// In rising order, each four times the one before, from 128 KiB to 512 MiB, or to `most_bytes` if
/// that is less. Takes about a second.
std::vector<Rung> memory_ladder(int threads, double most_bytes);

}  // namespace attnbench::measure
