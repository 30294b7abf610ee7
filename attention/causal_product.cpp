#include "attention/causal_product.hpp"

namespace attnbench::causal_product {

using at::Tensor;

Tensor feature_of(const Tensor& x, Feature feature) {
  if (feature == Feature::identity) return x;
  return at::exp(x.clamp_max(0)) + at::relu(x);
}

Tensor feature_gradient(const Tensor& value, const Tensor& gradient, Feature feature) {
  if (feature == Feature::identity) return gradient;
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

Tensor materialised(const Tensor& x, const Tensor& y, const Tensor& c, const Form& form,
                    Tensor state) {
  const at::AutoGradMode record(!state.defined() && at::GradMode::is_enabled());
  const auto type = compute_type(c.scalar_type());
  const Tensor a = feature_of(x.to(type), form.feature);
  const Tensor b = feature_of(y.to(type), form.feature);
  const Tensor columns = columns_of(c.to(type), form);
  Tensor states = at::cumsum(b.unsqueeze(-1) * columns.unsqueeze(-2), 2);
  if (state.defined()) {
    states += state.unsqueeze(2);
    state.copy_(states.select(2, -1));
  }
  return result_of(at::matmul(a.unsqueeze(-2), states).squeeze(-2), form).to(c.scalar_type());
}

}  // namespace attnbench::causal_product
