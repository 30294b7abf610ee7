#include "attention/algorithms/tokens/rotary.hpp"

#include <cmath>

#include "attention/algorithms/tokens/blocks.hpp"

namespace attnbench {

at::Tensor rotated(const at::Tensor& x, std::int64_t first, double base, Turn turn) {
  const std::int64_t pairs = x.size(3) / 2;
  if (pairs == 0) return x;
  const auto type = compute_type(x.scalar_type());
  const auto exact = at::TensorOptions(at::kDouble).device(x.device());
  const at::Tensor speeds =
      (at::arange(pairs, exact) * (-std::log(base) / static_cast<double>(pairs))).exp();
  const at::Tensor angles = at::arange(first, first + x.size(2), exact).unsqueeze(-1) * speeds;
  const at::Tensor cosine = angles.cos().to(type);
  const at::Tensor sine = (turn == Turn::forth ? angles.sin() : -angles.sin()).to(type);
  const at::Tensor even = x.narrow(3, 0, 2 * pairs).to(type).unflatten(3, {pairs, 2});
  const at::Tensor a = even.select(-1, 0);
  const at::Tensor b = even.select(-1, 1);
  const at::Tensor turned =
      at::stack({a * cosine - b * sine, a * sine + b * cosine}, -1).flatten(-2).to(x.scalar_type());
  if (x.size(3) == 2 * pairs) return turned;
  return at::cat({turned, x.narrow(3, 2 * pairs, 1)}, 3);
}

}  // namespace attnbench
