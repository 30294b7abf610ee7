#include "attention/algorithms/performer/random_features.hpp"

#include <algorithm>
#include <cmath>

#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/mechanism.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench {
namespace {

using at::Tensor;

/// Q of Z = Q R with a positive diagonal of R: only then is Q of Haar measure for a normal Z
/// (Mezzadri 2007). The signs of LAPACK's result depend on Z, which would bias the kernel.
Tensor haar(const Tensor& normal) {
  const auto [q, r] = at::linalg_qr(normal);
  const Tensor diagonal = r.diagonal(0, -2, -1);
  return q *
         at::where(diagonal < 0, -at::ones_like(diagonal), at::ones_like(diagonal)).unsqueeze(-2);
}

}  // namespace

Tensor draw_features(std::uint64_t seed, const std::string& name, const RandomFeatures& asked,
                     const Problem& problem) {
  Problem exact = problem;
  exact.device = "cpu";
  exact.dtype = Dtype::float64;
  const std::int64_t blocks = std::max<std::int64_t>(1, asked.blocks);
  const std::int64_t groups = (asked.count + asked.width - 1) / asked.width;
  const auto root = std::sqrt(static_cast<double>(asked.width));
  Tensor omega = draw_normal(seed, name, {blocks, groups, asked.width, asked.width}, 1, exact);
  if (asked.orthogonal) {
    // Rows and columns of a Haar matrix have the same distribution; a group is a set of rows.
    omega = haar(omega);
    if (asked.chi_norms) {
      const Tensor others =
          draw_normal(seed, name + " norms", {blocks, groups, asked.width, asked.width}, 1, exact);
      omega = omega * others.norm(2, {-1}, true);
    } else {
      omega = omega * root;
    }
  } else if (!asked.chi_norms) {
    omega = omega * (root / omega.norm(2, {-1}, true));
  }
  omega = omega.flatten(1, 2).narrow(1, 0, asked.count);
  if (asked.blocks == 0) omega = omega.squeeze(0);
  return omega.to(at::Device(problem.device), compute_type(scalar_type(problem.dtype)))
      .contiguous();
}

}  // namespace attnbench
