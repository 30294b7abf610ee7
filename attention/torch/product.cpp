#include "attention/torch/product.hpp"

namespace attnbench {
namespace {

/// Whether a sum of 512 ones ends at 256, where bfloat16 can no longer add one.
bool sums_are_rounded() {
  static const bool rounded = [] {
    const at::NoGradGuard no_grad;
    const at::Tensor ones = at::ones({32, 512}, at::kBFloat16);
    return at::mm(ones, at::ones({512, 32}, at::kBFloat16)).max().item<double>() < 512;
  }();
  return rounded;
}

/// LibTorch 1.13 leaves products of fewer multiplications than this to a loop that rounds its sums.
constexpr std::int64_t kFewMultiplications = 16 * 16 * 16;

bool is_small(const at::Tensor& a, const at::Tensor& b) {
  return a.numel() * b.size(-1) <= kFewMultiplications;
}

}  // namespace

at::Tensor product(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != at::kBFloat16 || !a.is_cpu() || !(is_small(a, b) || sums_are_rounded())) {
    return at::matmul(a, b);
  }
  return at::matmul(a.to(at::kFloat), b.to(at::kFloat)).to(at::kBFloat16);
}

}  // namespace attnbench
