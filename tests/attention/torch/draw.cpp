#include "attention/torch/draw.hpp"

#include "attention/mechanism.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("draw: numbers depend on seed, name and shape, and have the spread asked for") {
  Problem problem;
  problem.dtype = Dtype::float64;
  const auto normal = draw_normal(1, "a", {50, 400}, 2, problem);
  CHECK(normal.scalar_type() == at::kDouble);
  CHECK(normal.std().item<double>() == Approx(2).epsilon(0.03));
  CHECK(at::equal(normal, draw_normal(1, "a", {50, 400}, 2, problem)));
  CHECK(!at::equal(normal, draw_normal(2, "a", {50, 400}, 2, problem)));
  CHECK(!at::equal(normal, draw_normal(1, "b", {50, 400}, 2, problem)));
  CHECK(!at::equal(normal.flatten(), draw_normal(1, "a", {20000}, 2, problem)));
  const auto uniform = draw_uniform(1, "a", {50, 400}, -3, 1, problem);
  CHECK(uniform.min().item<double>() >= -3);
  CHECK(uniform.max().item<double>() <= 1);
  CHECK(uniform.mean().item<double>() == Approx(-1).margin(0.05));
  CHECK(at::equal(uniform, draw_uniform(1, "a", {50, 400}, -3, 1, problem)));
  problem.dtype = Dtype::float32;
  CHECK(at::equal(uniform.to(at::kFloat), draw_uniform(1, "a", {50, 400}, -3, 1, problem)));
}
