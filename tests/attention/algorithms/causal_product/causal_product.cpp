// The causal product's forms against the masked quadratic form.
#include "attention/algorithms/causal_product/causal_product.hpp"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "attention/torch/torch.hpp"

#include "tests/attention/held.hpp"
#include "tests/attention/memory_count.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::causal_product {
namespace {

using at::Tensor;
using test::relative_error;

using Product =
    std::function<Tensor(const Tensor&, const Tensor&, const Tensor&, const Form&, Tensor)>;

std::vector<std::pair<std::string, Product>> forms() {
  const auto in_chunks = [](std::int64_t chunk) {
    return [chunk](const Tensor& x, const Tensor& y, const Tensor& c, const Form& form,
                   const Tensor& state) { return chunked(x, y, c, form, chunk, state); };
  };
  return {{"materialised", materialised},
          {"scan", scan},
          {"chunks of 64", in_chunks(64)},
          {"chunks of 7", in_chunks(7)},
          {"one chunk", in_chunks(1000)}};
}

Tensor quadratic(const Tensor& x, const Tensor& y, const Tensor& c, const Form& form) {
  const Tensor a = feature_of(x, form.feature);
  const Tensor b = feature_of(y, form.feature);
  const Tensor weights = at::matmul(a, b.transpose(2, 3)).tril();
  const Tensor sums = at::matmul(weights, c);
  return form.normalised ? sums / (weights.sum(-1, true) + form.epsilon) : sums;
}

const std::vector<Form> kForms = {{Feature::identity, false, 0},
                                  {Feature::elu_plus_one, true, 1e-6},
                                  {Feature::elu_plus_one, false, 0}};

struct Sides {
  Tensor x, y, c;
};

Sides sides_of(std::int64_t length, std::int64_t features, std::int64_t width) {
  const auto options = at::TensorOptions(at::kDouble);
  return {at::randn({2, 2, length, features}, options),
          at::randn({2, 2, length, features}, options), at::randn({2, 2, length, width}, options)};
}

}  // namespace

TEST_CASE("every form of the causal product equals the masked quadratic form") {
  for (const std::int64_t length : {1, 2, 7, 63, 64, 65, 301}) {
    const Sides given = sides_of(length, 6, 9);
    for (const Form& form : kForms) {
      const Tensor expected = quadratic(given.x, given.y, given.c, form);
      for (const auto& [name, product] : forms()) {
        CAPTURE(length, name, form.normalised);
        CHECK(relative_error(product(given.x, given.y, given.c, form, {}), expected) < 1e-12);
      }
    }
  }
}

TEST_CASE("every form of the causal product has the quadratic form's gradients") {
  const Sides given = sides_of(301, 6, 9);
  const Tensor upstream = at::randn_like(given.c);
  for (const Form& form : kForms) {
    const auto slopes =
        [&](const std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>& product) {
          const Tensor x = given.x.clone().requires_grad_(true);
          const Tensor y = given.y.clone().requires_grad_(true);
          const Tensor c = given.c.clone().requires_grad_(true);
          torch::autograd::backward({product(x, y, c)}, {upstream});
          return Sides{x.grad(), y.grad(), c.grad()};
        };
    const Sides expected = slopes([&](const Tensor& x, const Tensor& y, const Tensor& c) {
      return quadratic(x, y, c, form);
    });
    for (const auto& [name, product] : forms()) {
      CAPTURE(name, form.normalised);
      const Sides got = slopes([&](const Tensor& x, const Tensor& y, const Tensor& c) {
        return product(x, y, c, form, {});
      });
      CHECK(relative_error(got.x, expected.x) < 1e-11);
      CHECK(relative_error(got.y, expected.y) < 1e-11);
      CHECK(relative_error(got.c, expected.c) < 1e-11);
    }
  }
}

TEST_CASE("the causal product continues from a state in blocks of any length") {
  const Sides given = sides_of(150, 6, 9);
  for (const Form& form : kForms) {
    const Tensor expected = quadratic(given.x, given.y, given.c, form);
    for (const auto& [name, product] : forms()) {
      CAPTURE(name, form.normalised);
      const Tensor state =
          at::zeros({2, 2, 6, form.normalised ? 10 : 9}, at::TensorOptions(at::kDouble));
      std::vector<Tensor> parts;
      std::int64_t begin = 0;
      for (const std::int64_t count : {1, 16, 2, 70, 1, 60}) {
        const auto of = [&](const Tensor& x) { return x.narrow(2, begin, count); };
        parts.push_back(product(of(given.x), of(given.y), of(given.c), form, state));
        begin += count;
      }
      CHECK(relative_error(at::cat(parts, 2), expected) < 1e-12);
    }
  }
}

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
  for (const auto& [name, product] : forms()) {
    if (name == "materialised" || name == "one chunk") continue;
    CAPTURE(name);
    std::int64_t peaks[2] = {0, 0};
    for (const int times : {1, 2}) {
      const Tensor x = at::randn({1, 1, 1024 * times, 16}).requires_grad_(true);
      const Tensor y = at::randn({1, 1, 1024 * times, 16}).requires_grad_(true);
      const Tensor c = at::randn({1, 1, 1024 * times, 16}).requires_grad_(true);
      const test::MemoryCount count;
      const Tensor out = product(x, y, c, kForms[1], {});
      CHECK(count.live() - static_cast<std::int64_t>(out.nbytes()) < 1024);
      CHECK(count.peak() - static_cast<std::int64_t>(out.nbytes()) < 300 * 1024);
      torch::autograd::backward({out}, {at::ones_like(out)});
      peaks[times - 1] = count.peak();
    }
    CHECK(peaks[1] - peaks[0] < 10 * 1024 * 16 * 4);
  }
}

}  // namespace attnbench::causal_product
