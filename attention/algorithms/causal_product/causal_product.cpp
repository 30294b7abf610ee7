#include "attention/algorithms/causal_product/causal_product.hpp"

#include <limits>
#include <vector>

namespace attnbench::causal_product {

using at::Tensor;

namespace {
// Tokens taken one after the other, in all blocks at once, from what the blocks before sum up to.
constexpr std::int64_t kBlock = 16;
/// Added to relu, so that no token is without weight: Choromanski et al.'s code and LRA's.
constexpr double kFloor = 1e-3;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
}  // namespace

Tensor feature_of(const Tensor& x, Feature feature) {
  if (feature == Feature::identity) return x;
  if (feature == Feature::relu_plus_floor) {
    return at::relu(x).add(kFloor).masked_fill(x == -kInfinity, 0);
  }
  return at::exp(x.clamp_max(0)) + at::relu(x);
}

Tensor feature_gradient(const Tensor& value, const Tensor& gradient, Feature feature) {
  if (feature == Feature::identity) return gradient;
  if (feature == Feature::relu_plus_floor) return gradient.masked_fill(value <= kFloor, 0);
  return gradient * value.clamp_max(1);
}

Tensor columns_of(const Tensor& c, const Form& form) {
  return form.normalised ? at::constant_pad_nd(c, {0, 1}, 1) : c;
}

Tensor result_of(const Tensor& sums, const Form& form) {
  if (!form.normalised) return sums;
  const std::int64_t width = sums.size(-1) - 1;
  const Tensor total = sums.narrow(-1, width, 1) + form.epsilon;
  return sums.narrow(-1, 0, width) / total.masked_fill(total == 0, 1);
}

Tensor sums_gradient(const Tensor& sums, const Tensor& gradient, const Form& form) {
  if (!form.normalised) return gradient;
  const std::int64_t width = sums.size(-1) - 1;
  const Tensor total = sums.narrow(-1, width, 1) + form.epsilon;
  const Tensor scaled = gradient / total.masked_fill(total == 0, 1);
  const Tensor y = result_of(sums, form);
  return at::cat({scaled, (scaled * y).sum(-1, true).neg_()}, -1);
}

Tensor materialised(const Operand& x, const Operand& y, const Tensor& c, const Form& form,
                    Tensor state) {
  const at::AutoGradMode record(!state.defined() && at::GradMode::is_enabled());
  const auto type = compute_type(c.scalar_type());
  const auto blocks_of = [&](const Tensor& whole) {
    return in_blocks(whole.flatten(0, 1), kBlock, 0);
  };
  const Tensor a = blocks_of(feature_of(x.all(type), form.feature));
  const Tensor b = blocks_of(feature_of(y.all(type), form.feature));
  const Tensor columns = blocks_of(columns_of(c.to(type), form));

  const Tensor totals = at::matmul(b.transpose(-2, -1), columns);
  const Tensor first =
      state.defined() ? state.flatten(0, 1).unsqueeze(1) : at::zeros_like(totals.narrow(1, 0, 1));
  Tensor sums = at::cat({first, totals.narrow(1, 0, totals.size(1) - 1)}, 1).cumsum(1);
  std::vector<Tensor> states;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    sums = at::addcmul(sums, b.select(2, i).unsqueeze(-1), columns.select(2, i).unsqueeze(-2));
    states.push_back(sums);
  }
  std::vector<Tensor> outputs;
  for (std::int64_t i = 0; i < kBlock; ++i) {
    const Tensor row = a.select(2, i).unsqueeze(-2);
    outputs.push_back(at::matmul(row, states[static_cast<std::size_t>(i)]).squeeze(-2));
  }
  if (state.defined()) state.copy_(sums.select(1, -1).view(state.sizes()));
  const Tensor products = at::stack(outputs, 2).flatten(1, 2).narrow(1, 0, c.size(2));
  return result_of(products, form).reshape(c.sizes()).to(c.scalar_type());
}

}  // namespace attnbench::causal_product
