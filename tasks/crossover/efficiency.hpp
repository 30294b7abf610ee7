// The efficiency length of the Comprehensive Attention Benchmark (CAB): a crossover read off fits.
#pragma once

#include <optional>
#include <vector>

namespace attnbench::tasks::crossover {

struct Efficiency {
  double length = 0;    ///< where the line comes below the parabola
  double r2_exact = 0;  ///< coefficients of determination of the two fits
  double r2_mechanism = 0;
};

/// Of times, as Zhang et al. 2023 (CAB: Comprehensive Attention Benchmarking on Long Sequence
/// Modeling) has it: softmax's fitted by a n^2 + b n + c, the mechanism's by d n + e, least
/// squares, the latter without the shortest length, whose fixed costs hide the growth; the positive
/// root of a n^2 + (b - d) n + (c - e), the greater one where there are two. `lengths` ascend.
/// Nothing with fewer than four of them, where a is not what the exact one's time is made of (under
/// 1 % of it at the longest), or without such a root.
std::optional<Efficiency> efficiency_length(const std::vector<double>& lengths,
                                            const std::vector<double>& exact,
                                            const std::vector<double>& mechanism);

}  // namespace attnbench::tasks::crossover
