// The prefix pool's forms against plain loops in double, on scores that single scales cannot hold.
#include "attention/algorithms/prefix_pool/prefix_pool.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "attention/torch/torch.hpp"

#include "tests/attention/fixture.hpp"
#include "tests/attention/memory_count.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;
using test::relative_error;

struct Case {
  std::string name;
  Tensor query, scores, values;  ///< in double
};

Tensor normal(std::initializer_list<std::int64_t> shape) {
  return at::randn(at::IntArrayRef(shape), at::kDouble);
}

Case case_of(const std::string& name, const std::function<double(std::int64_t)>& score,
             double noise = 0) {
  constexpr std::int64_t kLength = 150, kLatents = 5, kWidth = 9;
  Case made{name, normal({1, 2, kLength, kLatents}), noise * normal({1, 2, kLength, kLatents}),
            normal({1, 2, kLength, kWidth})};
  for (std::int64_t t = 0; t < kLength; ++t) {
    for (std::int64_t l = 0; l < kLatents; ++l) {
      made.scores.select(2, t).select(2, l) += score(t) + 0.25 * static_cast<double>(l * t % 7);
    }
  }
  return made;
}

std::vector<Case> cases() {
  return {case_of("flat", [](std::int64_t) { return 0.0; }),
          case_of("ramp of +30 per token", [](std::int64_t t) { return 30.0 * t; }),
          case_of("ramp of -30 per token", [](std::int64_t t) { return -30.0 * t; }),
          case_of("up and down by 30",
                  [](std::int64_t t) { return 30.0 * (t % 40 < 20 ? t % 40 : 40 - t % 40); }),
          case_of("1, 10, 1000 and on",
                  [](std::int64_t t) { return t % 50 < 3 ? std::pow(10.0, t % 50) : 0.5; }),
          case_of(
              "deviation 15", [](std::int64_t) { return 0.0; }, 15)};
}

/// The definition, prefix by prefix.
Tensor definition(const Tensor& query, const Tensor& scores, const Tensor& values) {
  const Tensor p = at::softmax(query, -1);
  std::vector<Tensor> rows;
  for (std::int64_t t = 0; t < scores.size(2); ++t) {
    const Tensor weights = at::softmax(scores.narrow(2, 0, t + 1), 2);
    const Tensor means = at::matmul(weights.transpose(2, 3), values.narrow(2, 0, t + 1));
    rows.push_back(at::matmul(p.narrow(2, t, 1), means));
  }
  return at::cat(rows, 2);
}

using Pool = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>;

std::vector<std::pair<std::string, Pool>> forms() {
  const auto in_chunks = [](std::int64_t chunk) {
    return [chunk](const Tensor& q, const Tensor& k, const Tensor& v) {
      return chunked(q, Query::logits, k, v, chunk);
    };
  };
  return {{"materialised", [](const Tensor& q, const Tensor& k,
                              const Tensor& v) { return materialised(q, Query::logits, k, v); }},
          {"scan", [](const Tensor& q, const Tensor& k,
                      const Tensor& v) { return scan(q, Query::logits, k, v); }},
          {"chunks of 64", in_chunks(64)},
          {"chunks of 24", in_chunks(24)},
          {"chunks of 7", in_chunks(7)},
          {"one chunk", in_chunks(1000)}};
}

struct Slopes {
  Tensor query, scores, values;
};

Slopes slopes_of(const Pool& pool, const Case& given, at::ScalarType type, const Tensor& upstream) {
  const Tensor q = given.query.to(type).clone().requires_grad_(true);
  const Tensor k = given.scores.to(type).clone().requires_grad_(true);
  const Tensor v = given.values.to(type).clone().requires_grad_(true);
  torch::autograd::backward({pool(q, k, v)}, {upstream.to(type)});
  return {q.grad(), k.grad(), v.grad()};
}

/// Relative to the gradient, or to the upstream's where the gradient all but vanishes: where one
/// token outweighs all others, latents agree and the differences that make gradients cancel.
double slope_error(const Tensor& got, const Tensor& expected, const Tensor& upstream) {
  const double size =
      std::max(expected.norm().item<double>(), 0.1 * upstream.norm().item<double>());
  // Not a number compares as false, hence as a failure.
  return (got.to(at::kDouble) - expected).norm().item<double>() / size;
}

}  // namespace

TEST_CASE("the prefix pool is right, not only finite, on any scores") {
  for (const Case& given : cases()) {
    const Tensor expected = definition(given.query, given.scores, given.values);
    const Tensor upstream = at::randn_like(expected);
    const Slopes slopes = slopes_of(definition, given, at::kDouble, upstream);
    for (const auto& [name, form] : forms()) {
      CAPTURE(given.name, name);
      // In float32 the scores themselves are rounded; multiples of 1/4 are not.
      const bool exact = given.name != "deviation 15";
      for (const at::ScalarType type : {at::kDouble, at::kFloat}) {
        const bool wide = type == at::kDouble;
        CAPTURE(wide);
        const Tensor y = form(given.query.to(type), given.scores.to(type), given.values.to(type));
        CHECK(relative_error(y, expected) < (wide ? 1e-12 : exact ? 1e-6 : 1e-5));
        const Slopes got = slopes_of(form, given, type, upstream);
        CHECK(slope_error(got.query, slopes.query, upstream) < (wide ? 1e-11 : 1e-5));
        CHECK(slope_error(got.scores, slopes.scores, upstream) < (wide ? 1e-11 : 1e-4));
        CHECK(relative_error(got.values, slopes.values) < (wide ? 1e-11 : 1e-5));
      }
    }
  }
}

TEST_CASE("the prefix pool's scan and chunks keep nothing but their inputs") {
  const auto measure = [](const Pool& form, std::int64_t length) {
    const Tensor q = at::randn({1, 1, length, 16}).requires_grad_(true);
    const Tensor k = at::randn({1, 1, length, 16}).requires_grad_(true);
    const Tensor v = at::randn({1, 1, length, 16}).requires_grad_(true);
    struct {
      std::int64_t saved, forward, backward;
    } bytes{};
    const test::MemoryCount count;
    const Tensor y = form(q, k, v);
    const auto output = static_cast<std::int64_t>(y.nbytes());
    bytes.saved = count.live() - output;
    bytes.forward = count.peak() - output;
    torch::autograd::backward({y}, {at::ones_like(y)});
    bytes.backward = count.peak();
    return bytes;
  };
  for (const auto& [name, form] : forms()) {
    if (name == "materialised" || name == "one chunk") continue;
    CAPTURE(name);
    const auto once = measure(form, 1024);
    const auto twice = measure(form, 2048);
    CHECK(once.saved < 1024);
    CHECK(twice.forward == once.forward);
    // Gradients, upstream and slopes: a few numbers per token and latent, not L D of them.
    CHECK(twice.backward - once.backward < 10 * 1024 * 16 * 4);
  }
}

}  // namespace attnbench::prefix_pool
