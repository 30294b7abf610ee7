#include "tasks/bits.hpp"

#include <limits>

#include "tests/support/catch.hpp"

using namespace attnbench;
using Catch::Contains;

TEST_CASE("a snapshot names what was changed in place, one bit of it included", "[bits]") {
  const at::Tensor query = at::randn({2, 3, 5, 4});
  const at::Tensor value = at::randn({2, 3, 5, 4}).to(at::kBFloat16);
  const at::Tensor strided = at::randn({4, 6}).transpose(0, 1);
  const tasks::Snapshot before(
      {{"query", query}, {"value", value}, {"strided", strided}, {"none", {}}});
  CHECK(before.changed().empty());
  at::Tensor(strided)[5][3].mul_(1 + 1e-6);
  CHECK(before.changed() == "strided");
  at::Tensor(value)[1][2][4][3].add_(1);
  CHECK(before.changed() == "value");
  CHECK(tasks::Snapshot({{"value", value}}).changed().empty());
}

TEST_CASE("bits are the same or not, NaN and zeros of either sign among them", "[bits]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor a = at::tensor({1.0F, nan, 0.0F});
  CHECK(tasks::same_bits(a, a.clone()));
  CHECK_FALSE(tasks::same_bits(a, at::tensor({1.0F, nan, -0.0F})));
  CHECK_FALSE(tasks::same_bits(a, a.to(at::kDouble)));
  CHECK_FALSE(tasks::same_bits(a, a.narrow(0, 0, 2)));
}

TEST_CASE("numbers that are not finite are counted in the whole tensor", "[bits]") {
  at::Tensor a = at::ones({7, 11, 13});
  CHECK(tasks::count_not_finite(a) == 0);
  a[3][4][5] = std::numeric_limits<float>::infinity();
  a[6][10].fill_(std::numeric_limits<float>::quiet_NaN());
  CHECK(tasks::count_not_finite(a) == 14);
}

TEST_CASE("an output of another form is described by both", "[bits]") {
  const at::Device cpu("cpu");
  const std::vector<std::int64_t> shape{2, 3};
  const auto departure = [&](const at::Tensor& output) {
    return tasks::departure_from(output, shape, at::kFloat, cpu);
  };
  CHECK(departure(at::ones({2, 3})).empty());
  CHECK(departure(at::ones({2, 3}, at::kDouble)) == "an output of float64, expected float32");
  CHECK_THAT(departure(at::ones({3, 2})), Contains("[3, 2]") && Contains("[2, 3]"));
  CHECK(departure({}) == "no output");
}
