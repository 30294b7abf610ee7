// Gated linear attention's implementations against its definition, and what is known of it.
#include "attention/algorithms/causal_product/causal_product.hpp"
#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;
using test::Said;

Held gla(std::int64_t length, std::int64_t width, double temperature = 16) {
  return {"gla",
          test::two_by_two(length, width),
          {{"gate_temperature", temperature}, {"chunk", test::count(24)}}};
}

}  // namespace

TEST_CASE("gla: every form equals the definition at odd sizes") {
  for (const double temperature : {1.0, 16.0}) {
    for (const auto& [length, width] : test::odd_sizes(24)) {
      const Held held = gla(length, width, temperature);
      CAPTURE(temperature);
      test::check_outputs(held, test::implementations_of("gla"));
    }
  }
}

TEST_CASE("gla: gradients, steps and padding are those of the definition") {
  const Held held = gla(57, 5, 1);
  for (const auto& name : test::implementations_of("gla")) {
    CAPTURE(name);
    test::check_gradients(held, name);
    test::check_padding(held, name, {40, 57, {"key", "value", "gate"}});
  }
  test::check_steps(held, test::implementations_of("gla"), {1, 24, 30});
}

TEST_CASE("gla: with open gates it is linear attention without a normaliser") {
  Held held = gla(53, 16);
  held.inputs.tensors["gate"].fill_(1000);
  const at::Tensor product =
      causal_product::scan(held.inputs["query"] / 4, held.inputs["key"], held.inputs["value"], {});
  for (const auto& name : test::implementations_of("gla")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), product) < 1e-12);
  }
}

TEST_CASE("gla: gates that underflow over a chunk are right in float32") {
  Held held = gla(70, 8, 1);
  held.inputs.tensors["gate"] =
      held.inputs["gate"] - 30 * at::arange(70, at::kDouble).view({1, 1, 70, 1}).remainder(7);
  const at::Tensor expected = held.expected();
  for (const auto& name : test::implementations_of("gla")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name, at::kFloat), expected) < 2e-6);
    for (const auto& [role, gradient] : held.gradients(name, at::kFloat)) {
      CAPTURE(role);
      CHECK(at::isfinite(gradient).all().item<bool>());
    }
  }
}

TEST_CASE("gla: refuses temperatures of 0, chunks of no token, and other patterns") {
  const Entry& entry = test::registry().entry("gla");
  const auto resolve = [&](const Said& said) { return Options::resolve(entry.options, said); };
  CHECK_THROWS_AS(resolve({{"gate_temperature", 0.0}}), UsageError);
  CHECK_THROWS_AS(resolve({{"chunk", test::count(0)}}), UsageError);
  Problem problem;
  for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
    problem.pattern = pattern;
    CHECK_FALSE(entry.supports(resolve({}), problem));
  }
}

}  // namespace attnbench
