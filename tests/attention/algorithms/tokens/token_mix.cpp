// What comes before projections: a short convolution and a recurrence, against plain loops.
#include "attention/algorithms/tokens/token_mix.hpp"

#include <cmath>
#include <functional>

#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace {

using test::relative_error;

Problem sizes(std::int64_t length) {
  Problem problem;
  problem.batch = 2;
  problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = length;
  problem.head_dim = problem.value_dim = 3;
  problem.dtype = Dtype::float64;
  problem.gradient = true;
  return problem;
}

struct Case {
  std::string name;
  std::shared_ptr<TokenMix> module;
  /// The same in loops over x [B, T, C] with the module's parameters.
  std::function<at::Tensor(const at::Tensor&)> loops;
};

Case convolution(std::int64_t taps) {
  auto module = short_convolution(sizes(1), taps);
  const auto loops = [module, taps](const at::Tensor& x) {
    const at::Tensor y = at::zeros_like(x);
    const at::Tensor w = module->named_parameters()["weight"].detach();
    for (std::int64_t t = 0; t < x.size(1); ++t) {
      for (std::int64_t i = 0; i < taps && i <= t; ++i) y.select(1, t) += w[i] * x.select(1, t - i);
    }
    return y;
  };
  return {"convolution of " + std::to_string(taps), module, loops};
}

Case recurrence() {
  auto module = recurrent_mix(sizes(1), 2);
  const auto loops = [module](const at::Tensor& x) {
    const auto p = module->named_parameters();
    const at::Tensor y = at::zeros_like(x);
    for (std::int64_t h = 0; h < 2; ++h) {
      const auto of = [&](const char* name) { return p[name].detach()[h]; };
      at::Tensor state = at::zeros({x.size(0), 3}, at::kDouble);
      for (std::int64_t t = 0; t < x.size(1); ++t) {
        const at::Tensor now = x.select(1, t).narrow(1, 3 * h, 3);
        const at::Tensor r =
            1 / (1 + (-(at::matmul(now, of("recurrence_weight")) + of("recurrence_bias"))).exp());
        const at::Tensor i =
            1 / (1 + (-(at::matmul(now, of("input_weight")) + of("input_bias"))).exp());
        const at::Tensor a = (-8 * (1 + of("lambda").exp()).log() * r).exp();
        state = a * state + (1 - a * a).sqrt() * i * now;
        y.select(1, t).narrow(1, 3 * h, 3).copy_(state);
      }
    }
    return y;
  };
  return {"recurrence", module, loops};
}

std::vector<Case> mixes() {
  std::vector<Case> all{convolution(3), convolution(1), recurrence()};
  for (auto& mix : all) {
    mix.module->draw_parameters(5);
    const at::NoGradGuard no_grad;
    for (auto& parameter : mix.module->parameters()) {
      parameter.add_(at::randn(parameter.sizes(), at::kDouble), 0.3);
    }
  }
  return all;
}

}  // namespace

TEST_CASE("token mix: equals plain loops at every length") {
  for (const auto& mix : mixes()) {
    for (const std::int64_t length : {1, 2, 3, 77}) {
      CAPTURE(mix.name, length);
      const at::Tensor x = at::randn({2, length, 6}, at::kDouble);
      CHECK(relative_error(mix.module->forward(x, nullptr).detach(), mix.loops(x)) < 1e-12);
    }
  }
}

TEST_CASE("token mix: gradients of tokens and parameters are the slopes of the loops") {
  for (const auto& mix : mixes()) {
    const at::Tensor x = at::randn({2, 41, 6}, at::kDouble).requires_grad_(true);
    const at::Tensor upstream = at::randn({2, 41, 6}, at::kDouble);
    mix.module->forward(x, nullptr).backward(upstream);
    const auto check = [&](const std::string& what, at::Tensor tensor) {
      CAPTURE(mix.name, what);
      const at::Tensor gradient = tensor.grad().clone();
      const at::NoGradGuard no_grad;
      const at::Tensor direction = at::randn(gradient.sizes(), at::kDouble);
      constexpr double step = 1e-5;
      const auto loss = [&] { return (mix.loops(x.detach()) * upstream).sum().item<double>(); };
      tensor.add_(direction, step);
      const double above = loss();
      tensor.add_(direction, -2 * step);
      const double slope = (above - loss()) / (2 * step);
      tensor.add_(direction, step);
      CHECK((gradient * direction).sum().item<double>() == Approx(slope).epsilon(1e-6));
    };
    check("x", x);
    for (const auto& item : mix.module->named_parameters()) check(item.key(), item.value());
  }
}

TEST_CASE("token mix: parameters depend on the seed alone, and 16 bits are summed in 32") {
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16}) {
    Problem problem = sizes(1);
    problem.dtype = dtype;
    problem.gradient = false;
    for (const auto& [a, b] :
         {std::pair(short_convolution(problem, 3), short_convolution(problem, 3)),
          std::pair(recurrent_mix(problem, 8), recurrent_mix(problem, 8))}) {
      a->draw_parameters(5);
      b->draw_parameters(5);
      const at::Tensor x = at::randn({2, 50, 6}, at::kFloat).to(scalar_type(dtype));
      CHECK(at::equal(a->forward(x, nullptr), b->forward(x, nullptr)));
      const at::Tensor y = a->forward(x, nullptr);
      CHECK(y.scalar_type() == x.scalar_type());
      State state;
      a->add_state(state, 2, x.options());
      const at::Tensor first = a->forward(x.narrow(1, 0, 20), &state);
      const at::Tensor rest = a->forward(x.narrow(1, 20, 30), &state);
      const double bar = dtype == Dtype::float32 ? 1e-6 : 4e-3;
      CHECK(relative_error(at::cat({first, rest}, 1).to(at::kDouble), y.to(at::kDouble)) < bar);
      b->draw_parameters(6);
      CHECK_FALSE(at::equal(b->forward(x, nullptr), y));
      CHECK(a->parameters().front().requires_grad() == false);
    }
  }
}

}  // namespace attnbench
