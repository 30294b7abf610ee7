// Mamba-2's implementations against its definition, and what is known of it.
#include "attention/algorithms/causal_product/causal_product.hpp"
#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;
using test::Said;

Held mamba2(std::int64_t length, std::int64_t width, std::int64_t state = 0) {
  return {"mamba2", test::two_by_two(length, width), {{"state", state}, {"chunk", test::count(8)}}};
}

}  // namespace

TEST_CASE("mamba2: every form equals the definition at odd sizes and states") {
  for (const std::int64_t state : {0, 1, 11}) {
    for (const auto& [length, width] : test::odd_sizes(8)) {
      const Held held = mamba2(length, width, state);
      CHECK(held.empty_state().tensors.at("memory").size(2) == (state > 0 ? state : width));
      CAPTURE(state);
      test::check_outputs(held, test::implementations_of("mamba2"));
    }
  }
}

TEST_CASE("mamba2: gradients, steps and padding are those of the definition") {
  const Held held = mamba2(37, 5, 4);
  CHECK(held.gradients("composite").size() == 7);
  for (const auto& name : test::implementations_of("mamba2")) {
    CAPTURE(name);
    test::check_gradients(held, name);
    test::check_padding(held, name, {30, 37, {"query", "key", "value", "time_step"}});
  }
  test::check_steps(held, test::implementations_of("mamba2"), {1, 8, 20});
}

TEST_CASE("mamba2: with the decay 1 it is linear attention without a normaliser") {
  Held held = mamba2(53, 16);
  held.parameters["a_log"].fill_(-1000);  // A = 0
  held.parameters["skip"].zero_();
  const at::Tensor raw = held.inputs["time_step"] + held.parameters["bias"].view({1, 2, 1, 1});
  const at::Tensor step = at::log1p(at::exp(raw));
  const at::Tensor product = causal_product::scan(held.inputs["query"], held.inputs["key"],
                                                  held.inputs["value"] * step, {});
  for (const auto& name : test::implementations_of("mamba2")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), product) < 1e-12);
  }
}

TEST_CASE("mamba2: time steps that empty the state within a chunk are right in float32") {
  Held held = mamba2(70, 8);
  held.inputs.tensors["time_step"] =
      30 * at::arange(70, at::kDouble).view({1, 1, 70, 1}).remainder(7) + held.inputs["time_step"];
  const at::Tensor expected = held.expected();
  for (const auto& name : test::implementations_of("mamba2")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name, at::kFloat), expected) < 2e-6);
    for (const auto& [role, gradient] : held.gradients(name, at::kFloat)) {
      CAPTURE(role);
      CHECK(at::isfinite(gradient).all().item<bool>());
    }
  }
}

TEST_CASE("mamba2: parameters are drawn in the ranges of the paper") {
  const Held held = mamba2(8, 4);
  const at::Tensor rate = held.parameters.at("a_log").exp();
  CHECK(rate.min().item<double>() >= 1);
  CHECK(rate.max().item<double>() <= 16);
  const at::Tensor step = at::log1p(held.parameters.at("bias").exp());
  CHECK(step.min().item<double>() >= 0.00099);
  CHECK(step.max().item<double>() <= 0.101);
}

TEST_CASE("mamba2: refuses negative states, chunks of no token, and other patterns") {
  const Entry& entry = test::registry().entry("mamba2");
  const auto resolve = [&](const Said& said) { return Options::resolve(entry.options, said); };
  CHECK_THROWS_AS(resolve({{"state", test::count(-1)}}), UsageError);
  CHECK_THROWS_AS(resolve({{"chunk", test::count(0)}}), UsageError);
  Problem problem;
  for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
    problem.pattern = pattern;
    CHECK_FALSE(entry.supports(resolve({}), problem));
  }
}

}  // namespace attnbench
