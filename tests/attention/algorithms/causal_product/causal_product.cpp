// What the causal product's forms keep, and its features. That forms agree is held by the
// conformance kit, through linear attention and the mechanisms with a gated state.
#include "attention/algorithms/causal_product/causal_product.hpp"

#include <cmath>

#include "attention/torch/torch.hpp"

#include "tests/attention/memory_count.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::causal_product {

using at::Tensor;

TEST_CASE("the features elu(x) + 1 keep their digits where e^x is tiny") {
  const Tensor x = at::tensor({-40.0, -1.0, 0.0, 2.0}, at::kFloat);
  const Tensor value = feature_of(x, Feature::elu_plus_one);
  CHECK(value[0].item<double>() == Approx(std::exp(-40.0)).epsilon(1e-6));
  CHECK(value[2].item<double>() == 1);
  CHECK(value[3].item<double>() == 3);
  const Tensor slope = feature_gradient(value, at::ones_like(x), Feature::elu_plus_one);
  CHECK(slope[1].item<double>() == Approx(std::exp(-1.0)).epsilon(1e-6));
  CHECK(slope[3].item<double>() == 1);
}

TEST_CASE("the causal product's scan and chunks keep nothing but their inputs") {
  const Form form{Feature::elu_plus_one, true, 1e-6};
  for (const std::int64_t chunk : {0, 7, 64}) {  // 0: the scan
    CAPTURE(chunk);
    std::int64_t peaks[2] = {0, 0};
    for (const int times : {1, 2}) {
      const Tensor x = at::randn({1, 1, 1024 * times, 16}).requires_grad_(true);
      const Tensor y = at::randn({1, 1, 1024 * times, 16}).requires_grad_(true);
      const Tensor c = at::randn({1, 1, 1024 * times, 16}).requires_grad_(true);
      const test::MemoryCount count;
      const Tensor out = chunk == 0 ? scan(x, y, c, form) : chunked(x, y, c, form, chunk);
      CHECK(count.live() - static_cast<std::int64_t>(out.nbytes()) < 1024);
      CHECK(count.peak() - static_cast<std::int64_t>(out.nbytes()) < 300 * 1024);
      torch::autograd::backward({out}, {at::ones_like(out)});
      peaks[times - 1] = count.peak();
    }
    CHECK(peaks[1] - peaks[0] < 10 * 1024 * 16 * 4);
  }
}

}  // namespace attnbench::causal_product
