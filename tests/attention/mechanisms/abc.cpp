// ABC's and gated slot attention's implementations against their definition, and what is known of
// them.
#include <array>
#include <limits>

#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;
using test::Said;

Held abc(std::int64_t length, std::int64_t width, std::int64_t slots, bool gated,
         Pattern pattern = Pattern::causal) {
  return {"abc",
          test::two_by_two(length, width, pattern),
          {{"latents_per_head", slots}, {"gated", gated}, {"chunk", test::count(24)}}};
}

}  // namespace

TEST_CASE("abc: every form equals the definition at odd sizes, gated or not") {
  for (const bool gated : {false, true}) {
    for (const auto& [length, width, slots] :
         std::vector<std::array<std::int64_t, 3>>{{1, 43, 5}, {3, 1, 1}, {24, 7, 16}, {90, 9, 7}}) {
      const Held held = abc(length, width, slots, gated);
      CAPTURE(gated, slots);
      test::check_outputs(held, test::implementations_of("abc"), 5e-6);
    }
  }
  for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
    const Held held = abc(33, 9, 5, false, pattern);
    CHECK(relative_error(held.output("composite"), held.expected()) < 1e-12);
    test::check_gradients(held, "composite");
  }
}

TEST_CASE("abc: gradients, steps and padding are those of the definition") {
  for (const bool gated : {false, true}) {
    const Held held = abc(41, 5, 3, gated);
    for (const auto& name : test::implementations_of("abc")) {
      CAPTURE(gated, name);
      test::check_gradients(held, name);
      if (!gated) test::check_padding(held, name, {30, 41, {"key", "value", "slots"}});
    }
    test::check_steps(held, test::implementations_of("abc"), {1, 20, 30});
  }
}

TEST_CASE("abc: with one slot for each token it is softmax attention") {
  constexpr std::int64_t length = 30;
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
    Held held = abc(length, 8, length, false, pattern);
    held.inputs.tensors["slots"] =
        at::full({length, length}, -std::numeric_limits<double>::infinity(), at::kDouble)
            .fill_diagonal_(0)
            .expand({2, 2, length, length})
            .contiguous();
    Held softmax("softmax", held.problem);
    for (const char* role : {"query", "key", "value"}) {
      softmax.inputs.tensors[role] = held.inputs[role];
    }
    const at::Tensor want = softmax.expected();
    CHECK(relative_error(held.expected(), want) < 1e-12);
    for (const auto& name : test::implementations_of("abc")) {
      if (pattern != Pattern::causal && name != "composite") continue;
      CAPTURE(name);
      CHECK(relative_error(held.output(name), want) < 1e-12);
      for (const auto& [role, gradient] : held.gradients(name)) {
        CAPTURE(role);
        CHECK(at::isfinite(gradient).all().item<bool>());
      }
    }
  }
}

TEST_CASE("abc: a constant added to all values is added to the output, unless slots forget") {
  for (const auto& name : test::implementations_of("abc")) {
    CAPTURE(name);
    Held held = abc(41, 5, 3, false);
    const at::Tensor plain = held.output(name);
    held.inputs.tensors["value"].add_(7);
    CHECK(relative_error(held.output(name), plain + 7) < 1e-12);
  }
}

TEST_CASE("abc: slots that forget all within a chunk are right in float32") {
  Held held = abc(70, 8, 5, true);
  held.inputs.tensors["slots"] =
      held.inputs["slots"] - 200 * at::arange(70, at::kDouble).view({1, 1, 70, 1}).remainder(7);
  const at::Tensor expected = held.expected();
  for (const auto& name : test::implementations_of("abc")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name, at::kFloat), expected) < 5e-6);
    for (const auto& [role, gradient] : held.gradients(name, at::kFloat)) {
      CAPTURE(role);
      CHECK(at::isfinite(gradient).all().item<bool>());
    }
  }
}

TEST_CASE("abc: refuses what has no meaning") {
  const Entry& entry = test::registry().entry("abc");
  const auto resolve = [&](const Said& said) { return Options::resolve(entry.options, said); };
  CHECK_THROWS_AS(resolve({{"chunk", test::count(0)}}), UsageError);
  CHECK_THROWS_AS(resolve({{"latents_per_head", test::count(-1)}}), UsageError);
  Problem problem;
  problem.pattern = Pattern::bidirectional;
  CHECK(entry.supports(resolve({}), problem));
  CHECK_FALSE(entry.supports(resolve({{"gated", true}}), problem));
  CHECK(test::registry().resolve("gsa").entry->name == "abc");
}

}  // namespace attnbench
