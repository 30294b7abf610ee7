// Random directions for feature maps of the softmax kernel: Choromanski et al. 2021, Rethinking
// Attention with Performers, sections 2.3 and 2.4.
#pragma once

#include <cstdint>
#include <string>

#include "core/problem.hpp"
#include "attention/torch/torch.hpp"

namespace attnbench {

struct RandomFeatures {
  std::int64_t blocks = 0;  ///< independent projections; 0 = one, without a dimension of its own
  std::int64_t count = 1;   ///< S, rows of a projection
  std::int64_t width = 1;   ///< D
  /// Rows come in groups of D, orthogonal to one another and of Haar measure, groups independent;
  /// or every row is independent of all others.
  bool orthogonal = true;
  /// Norms as those of normal vectors, independent of the directions (which makes the estimated
  /// kernel unbiased); or all sqrt(D).
  bool chi_norms = true;
};

/// [S, D] or [blocks, S, D] in float32 at least, on the problem's device; the seed, the name and
/// the sizes alone decide the numbers.
at::Tensor draw_features(std::uint64_t seed, const std::string& name, const RandomFeatures& asked,
                         const Problem& problem);

}  // namespace attnbench
