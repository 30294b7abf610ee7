#include "tasks/training/parts.hpp"

#include <cmath>

#include "tests/tasks/training/model_of.hpp"

using namespace attnbench;
using namespace attnbench::test;

TEST_CASE("a decoder is two steps of norm, product and GELU on vector and place", "[model]") {
  ModelOptions options;
  options.vocabulary = 11;
  options.decoder = true;
  const auto model = model_of("softmax", small(), options);
  CHECK(weights_in(*model) == weights_around(options, small()) + 2 * 4 * 8 * 8);
  const at::NoGradGuard no_grad;
  const auto weights = model->named_parameters();
  at::Tensor x = at::sin(at::arange(24, at::kDouble)).view({3, 8});
  const at::Tensor places = at::tensor({6, 0, 2}, at::kLong);
  const at::Tensor got = model->decoded(x, places);
  // By hand: the sinusoid of place p in column c, then the steps.
  at::Tensor want = x.clone();
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t column = 0; column < 8; ++column) {
      const double angle =
          places[row].item<double>() / std::pow(10000.0, static_cast<double>(column / 2 * 2) / 8);
      want[row][column] += column % 2 == 0 ? std::sin(angle) : std::cos(angle);
    }
  }
  const auto norm = [](const at::Tensor& y) {
    const at::Tensor centred = y - y.mean(-1, true);
    return centred / (centred.pow(2).mean(-1, true) + 1e-5).sqrt();
  };
  for (const std::string number : {"0", "1"}) {
    want = at::matmul(norm(want), weights["decoder.weight_" + number]);
    want = want * 0.5 * (1 + at::erf(want / std::sqrt(2.0)));
  }
  CHECK((got - norm(want)).abs().max().item<double>() < 1e-12);
  CHECK_THROWS_AS(model_of("softmax", small(), {})->decoded(x, places), std::logic_error);
}

TEST_CASE("a gated convolution follows its definition", "[model]") {
  const Problem problem = small();
  GatedConvolution convolution(3, problem, 5);
  const at::NoGradGuard no_grad;
  auto weights = convolution.named_parameters();
  weights["bias"].copy_(at::arange(8) * 0.1);
  weights["gate_bias"].fill_(0.3);
  const at::Tensor x = at::sin(at::arange(2 * 7 * 8, at::kDouble)).view({2, 7, 8});
  const at::Tensor got = convolution.forward(x);
  const at::Tensor taps = weights["taps.weight"];
  for (std::int64_t t = 0; t < 7; ++t) {
    at::Tensor seen = weights["bias"].clone().expand({2, 8}).clone();
    for (std::int64_t i = 0; i <= std::min<std::int64_t>(t, 2); ++i) {
      seen += taps[i] * x.select(1, t - i);
    }
    const at::Tensor gate = at::matmul(x.select(1, t), weights["gate"]) + 0.3;
    const at::Tensor want = x.select(1, t) + seen * gate;
    CHECK((got.select(1, t) - want).abs().max().item<double>() < 1e-12);
  }
  CHECK(convolution.empty_state(1, x.options()).bytes() == 2 * 8 * 8);
}
