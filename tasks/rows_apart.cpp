#include "tasks/rows_apart.hpp"

#include <algorithm>

namespace attnbench::tasks {
namespace {

/// Wide enough for squares of small and large numbers alike.
at::Tensor squares(const at::Tensor& tensor) {
  const auto wide = tensor.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return tensor.detach().to(wide).square().mean(-1).to(at::kDouble);
}

/// Of each row, its difference over its size: one number for each index before the last.
at::Tensor apart(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor size = squares(b);
  const at::Tensor least = size.mean().clamp_min(1e-300);
  return (squares(a.detach() - b.detach()) / at::maximum(size, least)).sqrt();
}

}  // namespace

double usual_size(const at::Tensor& output) {
  const at::NoGradGuard no_grad;
  return squares(output).mean().sqrt().item<double>();
}

Rows rows_apart(const at::Tensor& a, const at::Tensor& b, double bar, std::size_t most) {
  const at::NoGradGuard no_grad;
  const at::Tensor off = apart(a, b).reshape({-1});
  const std::int64_t count =
      std::min((off > bar).sum().item<std::int64_t>(), static_cast<std::int64_t>(most));
  if (count == 0) return {};
  const at::Tensor places = std::get<1>(off.topk(count)).cpu().contiguous();
  const std::int64_t heads = b.size(1);
  const std::int64_t tokens = b.size(2);
  Rows rows;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t place = places.data_ptr<std::int64_t>()[i];
    rows.push_back({place / tokens / heads, place / tokens % heads, place % tokens});
  }
  return rows;
}

std::int64_t count_rows_apart(const at::Tensor& a, const at::Tensor& b, double bar) {
  const at::NoGradGuard no_grad;
  return (apart(a, b) > bar).sum().item<std::int64_t>();
}

}  // namespace attnbench::tasks
