#include "attention/causal_product.hpp"

namespace attnbench::causal_product {

using at::Tensor;

Tensor materialised(const Tensor& a, const Tensor& b, const Tensor& c, Tensor state) {
  const at::AutoGradMode record(!state.defined() && at::GradMode::is_enabled());
  Tensor states = at::cumsum(b.unsqueeze(-1) * c.unsqueeze(-2), 2);
  if (state.defined()) {
    states += state.unsqueeze(2);
    state.copy_(states.select(2, states.size(2) - 1));
  }
  return at::matmul(a.unsqueeze(-2), states).squeeze(-2);
}

}  // namespace attnbench::causal_product
