// What the option `output` does with the outputs of the mechanisms with a gated state, and of ABC.
#include <cmath>

#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Fixture;
using test::Overrides;
using test::relative_error;

const std::vector<std::string> with_output{"delta", "gla", "retention", "mamba2", "abc", "rwkv7"};

Fixture with_kind(const std::string& mechanism, const char* kind) {
  Problem problem;
  problem.batch = problem.heads = 2;
  problem.length = 37;
  problem.key_length = 37;
  problem.head_dim = 5;
  problem.value_dim = 7;
  return {mechanism, problem, {{"output", test::word(kind)}, {"chunk", test::count(8)}}};
}

}  // namespace

TEST_CASE("output: a norm of 1 whatever the size of the values, and silu of the gate") {
  for (const std::string& mechanism : with_output) {
    CAPTURE(mechanism);
    Fixture plain = with_kind(mechanism, "plain");
    Fixture held = with_kind(mechanism, "normalised");
    Fixture gated = with_kind(mechanism, "gated");
    for (Fixture* each : {&held, &gated}) {
      for (const auto& [role, tensor] : plain.inputs.tensors) each->inputs.tensors[role] = tensor;
    }
    held.inputs.tensors["value"] = plain.inputs["value"] * 1e6;
    const at::Tensor y = plain.output("chunked");
    const at::Tensor want = y * at::rsqrt((y * y).mean(-1, true));
    CHECK(relative_error(held.output("chunked"), want) < 1e-9);
    // Where a plain output is small, the added 1e-5 shows: the rows are shorter, never longer.
    held.inputs.tensors["value"] = plain.inputs["value"];
    const at::Tensor normed = held.output("chunked");
    CHECK((normed * normed).mean(-1).max().item<double>() < 1);
    gated.inputs.tensors["output_gate"].fill_(2);
    CHECK(relative_error(gated.output("chunked"), normed * (2 / (1 + std::exp(-2.0)))) < 1e-12);
    gated.inputs.tensors["output_gate"].fill_(-1000);
    CHECK(gated.output("chunked").abs().max().item<double>() == 0);
    CHECK(at::isfinite(gated.gradients("chunked")["output_gate"]).all().item<bool>());
  }
}

TEST_CASE("output: plain is the default, linear in the values, and unknown words are refused") {
  for (const std::string& mechanism : with_output) {
    CAPTURE(mechanism);
    const Entry& entry = test::registry().entry(mechanism);
    CHECK(Options::resolve(entry.options, {}).text("output") == "plain");
    CHECK_THROWS_AS(Options::resolve(entry.options, {{"output", test::word("swish")}}), UsageError);
    const Fixture held = with_kind(mechanism, "plain");
    Fixture other = held, sum = held;
    other.inputs.tensors["value"] = at::randn_like(held.inputs["value"]);
    sum.inputs.tensors["value"] = held.inputs["value"] * 2 - other.inputs["value"] * 0.5;
    for (const auto& name : test::implementations_of(mechanism)) {
      CAPTURE(name);
      const at::Tensor want = held.output(name) * 2 - other.output(name) * 0.5;
      CHECK(relative_error(sum.output(name), want) < 1e-12);
    }
  }
}

TEST_CASE("output: the cost counts the norm and the gate, and reads the gate") {
  for (const std::string& mechanism : with_output) {
    CAPTURE(mechanism);
    const Fixture plain = with_kind(mechanism, "plain");
    const Fixture normed = with_kind(mechanism, "normalised");
    const Fixture gated = with_kind(mechanism, "gated");
    for (const Implementation& each : plain.entry.implementations) {
      CAPTURE(each.name);
      const auto cost = [&](const Fixture& held) { return each.cost(held.options, held.problem); };
      CHECK(cost(normed).model_flops > cost(plain).model_flops);
      CHECK(cost(gated).model_flops > cost(normed).model_flops);
      CHECK(cost(normed).minimal_bytes == cost(plain).minimal_bytes);
      CHECK(cost(gated).minimal_bytes - cost(plain).minimal_bytes == 2.0 * 2 * 37 * 7 * 4);
      CHECK(cost(gated).exponentials - cost(plain).exponentials == 2.0 * 2 * 37 * 7);
    }
  }
}

}  // namespace attnbench
