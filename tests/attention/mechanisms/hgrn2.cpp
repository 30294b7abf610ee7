// HGRN2's implementations against its definition, and what is known of it.
#include <cmath>

#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;
using test::Said;

Held hgrn2(std::int64_t length, std::int64_t width, double bound = 0) {
  return {"hgrn2",
          test::two_by_two(length, width),
          {{"lower_bound", bound}, {"chunk", test::count(24)}}};
}

}  // namespace

TEST_CASE("hgrn2: every form equals the definition at odd sizes, with and without a bound") {
  for (const double bound : {0.0, 0.75}) {
    for (const auto& [length, width] : test::odd_sizes(24)) {
      const Held held = hgrn2(length, width, bound);
      CAPTURE(bound);
      test::check_outputs(held, test::implementations_of("hgrn2"));
    }
  }
}

TEST_CASE("hgrn2: gradients, steps and padding are those of the definition") {
  for (const double bound : {0.0, 0.5}) {
    const Held held = hgrn2(57, 5, bound);
    for (const auto& name : test::implementations_of("hgrn2")) {
      CAPTURE(bound, name);
      test::check_gradients(held, name);
      test::check_padding(held, name, {40, 57, {"gate", "value"}});
    }
    test::check_steps(held, test::implementations_of("hgrn2"), {1, 24, 30});
  }
}

TEST_CASE("hgrn2: it is gated linear attention whose keys are one minus its forget gates") {
  const Held held = hgrn2(53, 16);
  Problem problem = held.problem;
  Held gla("gla", problem, {{"gate_temperature", 1.0}, {"chunk", test::count(24)}});
  gla.inputs.tensors["query"] = at::silu(held.inputs["query"]);
  gla.inputs.tensors["key"] = at::sigmoid(-held.inputs["gate"]);
  gla.inputs.tensors["value"] = held.inputs["value"];
  gla.inputs.tensors["gate"] = held.inputs["gate"];
  for (const auto& name : test::implementations_of("hgrn2")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), gla.output(name)) < 1e-12);
  }
}

TEST_CASE("hgrn2: a constant value comes to be held, whatever the gates") {
  // f S + (1 - f) v is a mean of what was written: with one value all rows tend to it.
  Held held = hgrn2(400, 8);
  held.inputs.tensors["value"].fill_(3);
  held.inputs.tensors["query"].fill_(1);
  const double read = 8 * (1 / (1 + std::exp(-1.0))) / std::sqrt(8.0);
  const at::Tensor last = held.output("chunked").select(2, 399);
  CHECK(relative_error(last, at::full_like(last, 3 * read)) < 1e-9);
}

TEST_CASE("hgrn2: gates that empty the state, or keep all of it, are right in float32") {
  for (const double sign : {-1.0, 1.0}) {
    Held held = hgrn2(70, 8);
    held.inputs.tensors["gate"] =
        held.inputs["gate"] +
        sign * 12 * at::arange(70, at::kDouble).view({1, 1, 70, 1}).remainder(7);
    const at::Tensor expected = held.expected();
    for (const auto& name : test::implementations_of("hgrn2")) {
      CAPTURE(sign, name);
      CHECK(relative_error(held.output(name, at::kFloat), expected) < 2e-6);
      for (const auto& [role, gradient] : held.gradients(name, at::kFloat)) {
        CAPTURE(role);
        CHECK(at::isfinite(gradient).all().item<bool>());
      }
    }
  }
}

TEST_CASE("hgrn2: refuses bounds below 0 or of 1, chunks of no token, and other patterns") {
  const Entry& entry = test::registry().entry("hgrn2");
  const auto resolve = [&](const Said& said) { return Options::resolve(entry.options, said); };
  CHECK_THROWS_AS(resolve({{"lower_bound", 1.0}}), UsageError);
  CHECK_THROWS_AS(resolve({{"lower_bound", -0.1}}), UsageError);
  CHECK_THROWS_AS(resolve({{"chunk", test::count(0)}}), UsageError);
  Problem problem;
  for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
    problem.pattern = pattern;
    CHECK_FALSE(entry.supports(resolve({}), problem));
  }
}

}  // namespace attnbench
