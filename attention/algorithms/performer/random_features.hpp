// Random directions for feature maps of the softmax kernel: Choromanski et al. 2021, Rethinking
// Attention with Performers, sections 2.3 and 2.4.
#pragma once

#include <cstdint>
#include <string>

#include "attention/torch/torch.hpp"
#include "core/problem.hpp"

namespace attnbench {

struct RandomFeatures {
  std::int64_t blocks = 0;  ///< independent projections; 0 = one, without a leading dimension
  std::int64_t count = 1;   ///< S, rows of a projection
  std::int64_t width = 1;   ///< D
  /// Groups of D rows are orthogonal and of Haar measure, and groups are independent; or all rows
  /// are independent.
  bool orthogonal = true;
  /// Norms are distributed as those of normal vectors, independent of the directions (which makes
  /// the estimated kernel unbiased); or all are sqrt(D).
  bool chi_norms = true;
};

/// Random features [S, D] or [blocks, S, D] in float32 at least, on the problem's device. The
/// numbers depend only on the seed, the name and the sizes.
at::Tensor draw_features(std::uint64_t seed, const std::string& name, const RandomFeatures& asked,
                         const Problem& problem);

}  // namespace attnbench
