// What is known of the RG-LRU, whatever computes it.
#include <cmath>

#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Fixture;
using test::relative_error;

const std::vector<std::string> implementations{"composite", "scan", "chunked"};

/// With biases that are not zero.
Fixture rg_lru(std::int64_t length, std::int64_t width, std::int64_t chunk = 8,
               const std::string& first_input = "scaled") {
  Problem problem;
  problem.batch = problem.heads = 2;
  problem.length = length;
  problem.head_dim = problem.value_dim = width;
  problem.gradient = true;
  Fixture held("rg_lru", problem, {{"chunk", chunk}, {"first_input", first_input}});
  held.parameters["recurrence_bias"].copy_(at::linspace(-1, 1, 2 * width).view({2, width}));
  held.parameters["input_bias"].copy_(at::linspace(1, -0.5, 2 * width).view({2, width}));
  return held;
}

}  // namespace

TEST_CASE("rg_lru: a closed gate holds the state, an open one forgets it") {
  for (const auto& name : implementations) {
    CAPTURE(name);
    Fixture held = rg_lru(20, 3);
    // sigmoid(-1000) is 0: a is 1 and nothing enters.
    held.inputs.tensors["recurrence_gate"].slice(2, 10, 20).fill_(-1000);
    const at::Tensor y = held.output(name);
    CHECK(at::equal(y.slice(2, 10, 20), y.slice(2, 9, 10).expand({2, 2, 10, 3})));
    for (const auto& [what, gradient] : held.gradients(name)) {
      CAPTURE(what);
      CHECK(at::isfinite(gradient).all().item<bool>());
    }
    // softplus(1000) is 1000: a is 0, and the output the gated value itself.
    held.inputs.tensors["recurrence_gate"].fill_(3);
    held.parameters["lambda"].fill_(1000);
    held.parameters["input_bias"].zero_();
    const at::Tensor gated = at::sigmoid(held.inputs["input_gate"]) * held.inputs["value"];
    CHECK(relative_error(held.output(name), gated) < 1e-12);
  }
}

TEST_CASE("rg_lru: a plain first input is the gated value of the first real token") {
  for (const auto& name : implementations) {
    CAPTURE(name);
    Fixture held = rg_lru(37, 5, 2, "plain");
    // h_0 = i_0 v_0, and it is not what the scaled form has.
    const at::Tensor i =
        at::sigmoid(held.inputs["input_gate"] + held.parameters["input_bias"].unsqueeze(1));
    const at::Tensor plain = i * held.inputs["value"];
    const auto row = [](const at::Tensor& all, std::int64_t t) { return all.select(2, t); };
    CHECK(relative_error(row(held.output(name), 0), row(plain, 0)) < 1e-12);
    CHECK(relative_error(row(rg_lru(37, 5, 2).output(name), 0), row(plain, 0)) > 0.1);
    // Wherever that token stands: in the second piece of 32, too.
    for (const std::int64_t first : {4, 35}) {
      held.inputs.key_mask = at::arange(37).ge(first).expand({2, 37});
      CHECK(relative_error(row(held.output(name), first), row(plain, first)) < 1e-12);
    }
  }
}

TEST_CASE("rg_lru: both directions are two recurrences, one over the reversed tokens") {
  Problem problem;
  problem.batch = problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = 37;
  problem.head_dim = problem.value_dim = 5;
  problem.gradient = true;
  problem.pattern = Pattern::bidirectional;
  for (const auto& name : implementations) {
    CAPTURE(name);
    Fixture both("rg_lru", problem,
                 {{"chunk", test::count(2)}, {"directions", test::word("both")}});
    Fixture ahead = rg_lru(37, 5, 2);
    Fixture back = rg_lru(37, 5, 2);
    ahead.inputs = both.inputs;
    for (const auto& [role, tensor] : both.inputs.tensors) {
      back.inputs.tensors[role] = tensor.flip({2});
    }
    for (const char* own : {"lambda", "recurrence_bias", "input_bias"}) {
      ahead.parameters[own] = both.parameters[own];
      back.parameters[own] = both.parameters["backward_" + std::string(own)];
    }
    CHECK(relative_error(both.output(name), ahead.output(name) + back.output(name).flip({2})) <
          1e-12);
    CHECK_FALSE(at::equal(both.parameters["lambda"], both.parameters["backward_lambda"]));
  }
}

TEST_CASE("rg_lru: recurrentgemma's lambda has the eighth root of the decay on a ring") {
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.head_dim = problem.value_dim = 2000;
  problem.dtype = Dtype::float64;
  const Entry entry = test::registry().entry("rg_lru");
  const Options options =
      Options::resolve(entry.options, {{"decay_init", std::string("recurrentgemma")}});
  const auto mechanism = entry.make(options, problem);
  const at::Tensor drawn = mechanism->named_parameters()["lambda"].detach();
  const at::Tensor square = (at::softplus(drawn) * -2).exp();  // of a^(1/8)
  CHECK(square.min().item<double>() > 0.81 - 1e-6);
  CHECK(square.max().item<double>() < 0.998001 + 1e-6);
  // Uniform: mean and mean square.
  CHECK(square.mean().item<double>() == Approx((0.81 + 0.998001) / 2).margin(0.004));
  CHECK(square.var().item<double>() == Approx(std::pow(0.188001, 2) / 12).epsilon(0.05));
}

TEST_CASE("rg_lru: lambda is drawn so that fully gated decays lie in [0.9, 0.999]") {
  Fixture held = rg_lru(1, 500);
  for (const Dtype dtype : {Dtype::float64, Dtype::bfloat16}) {
    CAPTURE(to_string(dtype));
    held.problem.dtype = dtype;
    const auto mechanism = held.entry.make(held.options, held.problem);
    const at::Tensor drawn = mechanism->named_parameters()["lambda"].detach().clone();
    const at::Tensor decay = (at::softplus(drawn.to(at::kDouble)) * -8).exp();
    const double slack = dtype == Dtype::float64 ? 1e-9 : 4e-3;
    CHECK(decay.min().item<double>() > 0.9 - slack);
    CHECK(decay.max().item<double>() < 0.999 + slack);
    CHECK(decay.mean().item<double>() == Approx(0.9495).margin(0.004));
    mechanism->draw_parameters(7);
    CHECK_FALSE(at::equal(mechanism->named_parameters()["lambda"], drawn));
  }
}

}  // namespace attnbench
