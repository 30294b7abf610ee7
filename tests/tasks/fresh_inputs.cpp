#include "tasks/fresh_inputs.hpp"

#include <set>

#include "tasks/output_checks.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using tasks::FreshInputs;

namespace {

at::Tensor rows_that_differ(const at::Tensor& a, const at::Tensor& b, std::int64_t dim) {
  std::vector<std::int64_t> others;
  for (std::int64_t i = 0; i < a.dim(); ++i) {
    if (i != dim) others.push_back(i);
  }
  return a.ne(b).to(at::kLong).sum(others);
}

}  // namespace

TEST_CASE("each call finds one new token in each tensor, and the same in its copy", "[fresh]") {
  for (const at::ScalarType type : {at::kFloat, at::kDouble, at::kBFloat16, at::kHalf}) {
    const at::Tensor live = at::randn({2, 3, 9, 8}).to(type);
    const void* place = live.data_ptr();
    FreshInputs fresh({{"query", live, 2}}, 7);
    CHECK(fresh.last_token(0) == -1);
    std::set<std::int64_t> tokens;
    for (int i = 0; i < 40; ++i) {
      const at::Tensor before = live.clone();
      fresh.renew();
      const at::Tensor differ = rows_that_differ(live, before, 2);
      CHECK(differ[fresh.last_token(0)].item<std::int64_t>() > 30);  // of 48, some drawn alike
      CHECK((differ > 0).sum().item<std::int64_t>() == 1);
      CHECK(fresh.changed().empty());
      tokens.insert(fresh.last_token(0));
    }
    CHECK(tokens.size() > 6);
    CHECK(live.data_ptr() == place);
    CHECK(tasks::count_not_finite(live) == 0);
    CHECK(live.to(at::kDouble).std().item<double>() == Approx(1).margin(0.3));
    at::Tensor(live).mul_(2);
    CHECK(fresh.changed() == "query");
  }
}

TEST_CASE("token ids stay in range, and strided tensors are renewed as well", "[fresh]") {
  const at::Tensor ids = at::arange(40, at::kLong).reshape({2, 20});
  const at::Tensor turned = at::randn({2, 8, 20}).transpose(1, 2);
  FreshInputs fresh({{"ids", ids, 1}, {"turned", turned, 1}}, 3);
  fresh.limit(4, 6);
  for (int i = 0; i < 30; ++i) {
    fresh.renew();
    CHECK((fresh.last_token(0) == 4 || fresh.last_token(0) == 5));
    CHECK((fresh.last_token(1) == 4 || fresh.last_token(1) == 5));
  }
  CHECK(ids.min().item<std::int64_t>() >= 0);
  CHECK(ids.max().item<std::int64_t>() < 40);
  CHECK(ids[0][3].item<std::int64_t>() == 3);
  CHECK(fresh.changed().empty());
}

TEST_CASE("new numbers follow the seed alone", "[fresh]") {
  const at::Tensor numbers = at::randn({1, 2, 30, 4});
  const auto after = [&](std::uint64_t seed) {
    const at::Tensor live = numbers.clone();
    FreshInputs fresh({{"query", live, 2}}, seed);
    for (int i = 0; i < 5; ++i) fresh.renew();
    return live;
  };
  CHECK(after(1).equal(after(1)));
  CHECK_FALSE(after(1).equal(after(2)));
}
