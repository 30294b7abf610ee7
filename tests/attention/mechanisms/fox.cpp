// What is known of forgetting attention, whatever computes it.
#include <cmath>

#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::count;
using test::Fixture;
using test::Overrides;
using test::relative_error;
using test::word;

/// With chunks of which there are several.
Fixture fox(std::int64_t length, Overrides said = {}) {
  said.insert({{"query_chunk", count(16)}, {"key_chunk", count(8)}});
  return {"fox", test::two_by_two(length, 6), said};
}

}  // namespace

TEST_CASE("fox: gates that are open leave softmax attention, closed ones the value itself",
          "[fox]") {
  Fixture held = fox(37);
  held.inputs.tensors["forget_gate"].fill_(1000);
  Fixture softmax("softmax", held.problem);
  for (auto& [role, tensor] : softmax.inputs.tensors) tensor = held.inputs[role];
  softmax.upstream = held.upstream;
  const at::Tensor want = softmax.output("composite");
  auto gradients = softmax.gradients("composite");
  for (const auto& name : test::implementations_of("fox")) {
    CAPTURE(name);
    held.inputs.tensors["forget_gate"].fill_(1000);
    CHECK(relative_error(held.output(name), want) < 1e-13);
    for (const auto& [role, gradient] : held.gradients(name)) {
      if (gradients.count(role) == 1) CHECK(relative_error(gradient, gradients[role]) < 1e-12);
    }
    held.inputs.tensors["forget_gate"].fill_(-1000);
    CHECK(relative_error(held.output(name), held.inputs["value"]) < 1e-13);
  }
}

TEST_CASE("fox: gates alike are a bias that falls with the distance, whether input or parameter",
          "[fox]") {
  Fixture held = fox(37);
  held.inputs.tensors["query"].zero_();
  held.inputs.tensors["forget_gate"].zero_();  // each token halves what was before it
  const at::Tensor place = at::arange(37, at::kDouble);
  const at::Tensor distance = place.unsqueeze(1) - place.unsqueeze(0);
  const at::Tensor halved = at::exp2(-distance).masked_fill(distance < 0, 0);
  const at::Tensor want = at::matmul(halved / halved.sum(-1, true), held.inputs["value"]);
  for (const auto& name : test::implementations_of("fox")) {
    CAPTURE(name);
    held.inputs.tensors["forget_gate"].zero_();
    held.parameters["forget_bias"].zero_();
    CHECK(relative_error(held.output(name), want) < 1e-13);
    held.inputs.tensors["forget_gate"].fill_(-3);
    held.parameters["forget_bias"].fill_(3);
    CHECK(relative_error(held.output(name), want) < 1e-13);
    held.parameters["forget_bias"][1].fill_(4);  // the second head's alone
    CHECK(relative_error(held.output(name).select(1, 0), want.select(1, 0)) < 1e-13);
    CHECK(relative_error(held.output(name).select(1, 1), want.select(1, 1)) > 0.01);
  }
}

TEST_CASE("fox: sums of log gates that outgrow float32 cost the scores nothing", "[fox]") {
  // 900 tokens that forget everything: the sum is -27000, of which float32 holds 0.002.
  constexpr std::int64_t length = 1000, forgetful = 900;
  Fixture held = fox(length, {{"query_chunk", count(128)}, {"key_chunk", count(128)}});
  held.inputs.tensors["forget_gate"].narrow(2, 0, forgetful).fill_(-30);
  const auto last = [&](const at::Tensor& y) { return y.narrow(2, forgetful, length - forgetful); };
  const at::Tensor want = last(held.output("composite"));
  const at::Tensor gradient = last(held.gradients("composite")["forget_gate"]);
  for (const auto& name : test::implementations_of("fox")) {
    CAPTURE(name);
    CHECK(relative_error(last(held.output(name, at::kFloat)), want) < 1e-6);
    CHECK(relative_error(last(held.gradients(name, at::kFloat)["forget_gate"]), gradient) < 1e-5);
    State state = held.empty_state(at::kFloat);
    held.step(name, state, 0, forgetful + 50, at::kFloat);
    const at::Tensor after = held.step(name, state, forgetful + 50, length, at::kFloat);
    CHECK(relative_error(after, want.narrow(2, 50, 50)) < 1e-6);
  }
}

TEST_CASE("fox: a full state refuses more tokens, and holds a sum in double for each", "[fox]") {
  const Fixture held = fox(10);
  State state = held.empty_state(at::kFloat);
  CHECK(state.bytes() == 2 * 2 * 10 * ((6 + 8) * 4 + 8));
  const Implementation& composite = held.entry.implementation("composite");
  Problem problem = held.problem;
  problem.dtype = Dtype::float32;
  CHECK(composite.cost(held.options, problem).state_bytes == static_cast<double>(state.bytes()));
  held.step("composite", state, 0, 10, at::kFloat);
  CHECK_THROWS_WITH(held.step("composite", state, 0, 1, at::kFloat),
                    "fox: the state has room for 10 tokens, not for 11");
}

TEST_CASE("fox: a plain output is linear in the values, and its weights sum to 1", "[fox]") {
  const Fixture held = fox(37);
  CHECK(held.options.text("output") == "plain");
  Fixture other = held, sum = held, constant = held;
  other.inputs.tensors["value"] = at::randn_like(held.inputs["value"]);
  sum.inputs.tensors["value"] = held.inputs["value"] * 2 - other.inputs["value"] * 0.5;
  constant.inputs.tensors["value"] = at::ones_like(held.inputs["value"]);
  for (const auto& name : test::implementations_of("fox")) {
    CAPTURE(name);
    const at::Tensor want = held.output(name) * 2 - other.output(name) * 0.5;
    CHECK(relative_error(sum.output(name), want) < 1e-12);
    CHECK(relative_error(constant.output(name), constant.inputs["value"]) < 1e-14);
  }
  CHECK_THROWS_AS(Options::resolve(held.entry.options, {{"output", word("silu")}}), UsageError);
}

TEST_CASE("fox: a norm of 1 whatever the size of the values, and the sigmoid of the gate",
          "[fox]") {
  Fixture plain = fox(37), normed = fox(37, {{"output", word("normalised")}});
  Fixture gated = fox(37, {{"output", word("gated")}});
  for (Fixture* each : {&normed, &gated}) {
    for (const auto& [role, tensor] : plain.inputs.tensors) each->inputs.tensors[role] = tensor;
    each->inputs.tensors["value"] = plain.inputs["value"] * 1e6;
  }
  for (const auto& name : test::implementations_of("fox")) {
    CAPTURE(name);
    const at::Tensor y = plain.output(name);
    const at::Tensor want = y * at::rsqrt((y * y).mean(-1, true));
    CHECK(relative_error(normed.output(name), want) < 1e-9);
    gated.inputs.tensors["output_gate"].fill_(2);
    CHECK(relative_error(gated.output(name), want / (1 + std::exp(-2.0))) < 1e-9);
    gated.inputs.tensors["output_gate"].fill_(-1000);
    CHECK(gated.output(name).abs().max().item<double>() == 0);
  }
}

TEST_CASE("fox: costs are those of softmax, the gates and what is done with the output", "[fox]") {
  const Fixture plain = fox(37), gated = fox(37, {{"output", word("gated")}});
  const double pairs = 4 * 37 * 38 / 2, tokens = 4 * 37;
  for (const auto& name : test::implementations_of("fox")) {
    CAPTURE(name);
    const Cost cost = plain.entry.implementation(name).cost(plain.options, plain.problem);
    const Entry& softmax = test::registry().entry("softmax");
    const Cost bare = softmax.implementation(name).cost(plain.options, plain.problem);
    CHECK(cost.model_flops == bare.model_flops + pairs + tokens);
    CHECK(cost.executed_flops >= cost.model_flops);
    CHECK(cost.minimal_bytes == bare.minimal_bytes + 4 * tokens);
    CHECK(cost.exponentials == bare.exponentials + 2 * tokens);
    CHECK(cost.workspace_bytes > bare.workspace_bytes);
    const Cost more = gated.entry.implementation(name).cost(gated.options, gated.problem);
    CHECK(more.minimal_bytes == cost.minimal_bytes + 4 * tokens * 8);
    CHECK(more.exponentials == cost.exponentials + tokens * 8);
  }
}

}  // namespace attnbench
