#include "attention/torch/product.hpp"

#include <array>

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

TEST_CASE("small products of bfloat16 are rounded once, too", "[product]") {
  for (const auto& [rows, terms, columns] :
       {std::array{1, 48, 16}, {2, 48, 5}, {1, 512, 5}, {16, 16, 16}, {1, 1, 1}}) {
    CAPTURE(rows, terms, columns);
    const at::Tensor a = at::randn({1, rows, terms}).to(at::kBFloat16);
    const at::Tensor b = at::randn({1, terms, columns}).to(at::kBFloat16);
    const at::Tensor want = at::matmul(a.to(at::kDouble), b.to(at::kDouble));
    const at::Tensor once = want.to(at::kBFloat16).to(at::kDouble);
    CHECK(relative_error(product(a, b).to(at::kDouble), want) <=
          1.2 * relative_error(once, want) + 1e-9);
  }
}
