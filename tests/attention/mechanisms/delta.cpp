// The delta rule's implementations against its definition, and what is known of it.
#include <cmath>

#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;
using test::Said;

Held delta(std::int64_t length, std::int64_t width, const char* gate, std::int64_t limit = 1) {
  return {
      "delta",
      test::two_by_two(length, width),
      {{"gate", test::word(gate)}, {"beta_limit", test::count(limit)}, {"chunk", test::count(8)}}};
}

constexpr const char* gates[] = {"none", "scalar", "channel"};

}  // namespace

TEST_CASE("delta: every form equals the definition at odd sizes, with each gate") {
  for (const char* gate : gates) {
    for (const auto& [length, width] : test::odd_sizes(8)) {
      const Held held = delta(length, width, gate, length % 2 == 0 ? 1 : 2);
      CAPTURE(gate);
      test::check_outputs(held, test::implementations_of("delta"), 5e-6);
    }
  }
}

TEST_CASE("delta: gradients, steps and padding are those of the definition") {
  for (const char* gate : gates) {
    const Held held = delta(37, 5, gate, 2);
    CHECK(held.gradients("composite").size() == (held.parameters.empty() ? 4u : 7u));
    std::vector<std::string> roles{"key", "value", "beta"};
    if (!held.parameters.empty()) roles.push_back("gate");
    for (const auto& name : test::implementations_of("delta")) {
      CAPTURE(gate, name);
      test::check_gradients(held, name);
      test::check_padding(held, name, {30, 37, roles});
    }
    test::check_steps(held, test::implementations_of("delta"), {1, 8, 20});
  }
}

TEST_CASE("delta: a gate that stays open changes nothing, and equal channels are one gate") {
  const Held none = delta(53, 16, "none");
  Held scalar = delta(53, 16, "scalar");
  Held channel = delta(53, 16, "channel");
  for (const auto& [role, tensor] : none.inputs.tensors) {
    scalar.inputs.tensors[role] = channel.inputs.tensors[role] = tensor;
  }
  channel.inputs.tensors["gate"] = scalar.inputs["gate"].expand({2, 2, 53, 16}).contiguous();
  channel.parameters["a_log"].copy_(scalar.parameters["a_log"]);
  channel.parameters["bias"].copy_(scalar.parameters["bias"].expand({2, 16}));
  for (const auto& name : test::implementations_of("delta")) {
    CAPTURE(name);
    CHECK(relative_error(channel.output(name), scalar.output(name)) < 1e-12);
    CHECK(relative_error(scalar.output(name), none.output(name)) > 1e-3);
  }
  scalar.inputs.tensors["gate"].fill_(-1000);
  channel.inputs.tensors["gate"].fill_(-1000);
  for (const auto& name : test::implementations_of("delta")) {
    CAPTURE(name);
    CHECK(relative_error(scalar.output(name), none.output(name)) < 1e-12);
    CHECK(relative_error(channel.output(name), none.output(name)) < 1e-12);
  }
}

TEST_CASE("delta: a key that is written again gives the new value alone") {
  // beta about 1, every key the same: what was stored under it is erased.
  Held held = delta(20, 8, "none");
  held.inputs.tensors["key"] = held.inputs["key"].narrow(2, 0, 1).expand({2, 2, 20, 8}).clone();
  held.inputs.tensors["query"] = held.inputs["key"].clone();
  held.inputs.tensors["beta"].fill_(60);
  const at::Tensor key = held.inputs["key"];
  const at::Tensor square = (key * key).sum(-1, true);
  const at::Tensor norm = square / (square + 1e-6);  // of a key divided by sqrt(|k|^2 + epsilon)
  const at::Tensor want = held.inputs["value"] * norm / std::sqrt(8.0);
  CHECK(relative_error(held.output("chunked"), want) < 1e-5);
}

TEST_CASE("delta: keys of norm 0 write nothing and have finite gradients") {
  for (const char* gate : gates) {
    Held held = delta(20, 8, gate);
    held.inputs.tensors["key"].narrow(2, 5, 3).zero_();
    held.inputs.tensors["query"].narrow(2, 9, 1).zero_();
    const at::Tensor expected = held.expected();
    for (const auto& name : test::implementations_of("delta")) {
      CAPTURE(gate, name);
      CHECK(relative_error(held.output(name), expected) < 1e-12);
      for (const auto& [role, gradient] : held.gradients(name, at::kFloat)) {
        CAPTURE(role);
        CHECK(at::isfinite(gradient).all().item<bool>());
      }
    }
  }
}

TEST_CASE("delta: refuses betas outside their range, unknown gates and other patterns") {
  const Entry& entry = test::registry().entry("delta");
  const auto resolve = [&](const Said& said) { return Options::resolve(entry.options, said); };
  CHECK_THROWS_AS(resolve({{"beta_limit", test::count(3)}}), UsageError);
  CHECK_THROWS_AS(resolve({{"beta_limit", test::count(0)}}), UsageError);
  CHECK_THROWS_AS(resolve({{"gate", test::word("vector")}}), UsageError);
  CHECK_THROWS_AS(resolve({{"chunk", test::count(0)}}), UsageError);
  CHECK_THROWS_AS(resolve({{"epsilon", 0.0}}), UsageError);
  Problem problem;
  for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
    problem.pattern = pattern;
    CHECK_FALSE(entry.supports(resolve({}), problem));
  }
  CHECK(test::registry().resolve("kda").options.at("gate") == test::word("channel"));
}

TEST_CASE("delta: the kernel has gradients, and refuses a dtype that it does not have") {
  const Entry& entry = test::registry().entry("delta");
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = 32;
  problem.head_dim = problem.value_dim = 8;
  const Implementation& fused = entry.implementation("fused");
  const Options options = Options::resolve(entry.options, {});
  CHECK(fused.supports(options, problem));
  problem.gradient = true;
  CHECK(fused.supports(options, problem));
  CHECK(fused.differentiable);
  problem.gradient = false;
  problem.dtype = Dtype::float16;
  CHECK_FALSE(fused.supports(options, problem));
}

TEST_CASE("delta: gates that empty the state within a chunk are right in float32") {
  for (const char* gate : {"scalar", "channel"}) {
    Held held = delta(70, 8, gate);
    held.inputs.tensors["gate"] =
        30 * at::arange(70, at::kDouble).view({1, 1, 70, 1}).remainder(7) + held.inputs["gate"];
    const at::Tensor expected = held.expected();
    for (const auto& name : test::implementations_of("delta")) {
      CAPTURE(gate, name);
      CHECK(relative_error(held.output(name, at::kFloat), expected) < 5e-6);
      for (const auto& [role, gradient] : held.gradients(name, at::kFloat)) {
        CAPTURE(role);
        CHECK(at::isfinite(gradient).all().item<bool>());
      }
    }
  }
}

}  // namespace attnbench
