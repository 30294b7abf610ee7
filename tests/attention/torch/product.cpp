#include "attention/torch/product.hpp"

#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::test;

TEST_CASE("products of bfloat16 are rounded once, whatever the CPU", "[product]") {
  const auto narrow = at::kBFloat16;
  // Rounded sums of ones end at 256.
  CHECK(at::equal(product(at::ones({32, 512}, narrow), at::ones({512, 32}, narrow)),
                  at::full({32, 32}, 512, narrow)));
  const at::Tensor a = at::randn({2, 37, 512}).to(narrow).requires_grad_(true);
  const at::Tensor b = at::randn({2, 512, 37}).to(narrow).requires_grad_(true);
  const at::Tensor wide_a = a.detach().to(at::kDouble), wide_b = b.detach().to(at::kDouble);
  const at::Tensor made = product(a, b);
  CHECK(made.scalar_type() == narrow);
  CHECK(relative_error(made.detach().to(at::kDouble), at::matmul(wide_a, wide_b)) < 3e-3);
  made.sum().backward();
  const at::Tensor ones = at::ones({2, 37, 37}, at::kDouble);
  CHECK(a.grad().scalar_type() == narrow);
  CHECK(relative_error(a.grad().to(at::kDouble), at::matmul(ones, wide_b.transpose(1, 2))) < 1e-2);
}
