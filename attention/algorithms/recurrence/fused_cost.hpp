// What the fused forms of the recurrent families cost beside what every form of theirs does.
#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/mechanism.hpp"

namespace attnbench {

/// Growth::from_length of what takes tokens together: up to half of it they become more.
inline constexpr std::int64_t kGrowingTogether = 2048;

/// Tokens whose rows are made together where the kernel's rows are not the inputs: rows of all
/// heads that fit a second-level cache, in whole blocks of the kernels.
inline std::int64_t tokens_together(std::int64_t heads, std::int64_t rows, std::int64_t bytes) {
  constexpr std::int64_t cached = std::int64_t{4} << 20;
  return std::clamp<std::int64_t>(cached / (heads * rows * bytes) / 64 * 64, 64,
                                  kGrowingTogether / 2);
}

/// `cost` in one kernel.
inline Cost in_one_kernel(Cost cost, double workspace_bytes) {
  cost.workspace_bytes = workspace_bytes;
  cost.saved_bytes = 0;
  // Three scans of as many operations as the forward pass.
  cost.backward_flops = 3;
  return cost;
}

}  // namespace attnbench
