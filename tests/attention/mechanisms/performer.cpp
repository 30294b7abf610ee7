// What is known of Performer, whatever computes it. What its features are made of is tested in
// tests/attention/algorithms/performer/random_features.cpp.
#include <cmath>

#include "attention/torch/torch.hpp"

#include "attention/algorithms/causal_product/causal_product.hpp"
#include "tests/attention/fixture.hpp"
#include "tests/attention/memory_count.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::count;
using test::Fixture;
using test::Overrides;
using test::relative_error;
using test::word;

Fixture performer(std::int64_t length, std::int64_t width, Overrides said,
                  Pattern pattern = Pattern::causal) {
  Problem problem = test::two_by_two(length, width, pattern);
  problem.dtype = Dtype::float64;
  said.insert({"chunk", count(16)});
  said.insert({"features", count(7)});
  return {"performer", problem, said};
}

std::vector<std::string> performer_implementations() {
  return test::implementations_of("performer");
}

std::shared_ptr<Mechanism> made(const Problem& problem, const Overrides& said) {
  const Entry entry = test::registry().entry("performer");
  return entry.make(entry.derive(Options::resolve(entry.options, said), problem), problem);
}

}  // namespace

TEST_CASE("performer's pooled form is the causal product of its features") {
  const Fixture held = performer(70, 5, {});
  const at::Tensor omega = held.parameters.at("omega");
  const auto phi = [&](const char* role) {
    const at::Tensor x = held.inputs[role] * std::pow(5, -0.25);
    return (at::matmul(x, omega.t()) - (x * x).sum(-1, true) / 2).exp();
  };
  const causal_product::Form form{causal_product::Feature::identity, true, 0};
  const at::Tensor expected =
      causal_product::scan(phi("query"), phi("key"), held.inputs["value"], form);
  for (const auto& name : performer_implementations()) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), expected) < 1e-12);
  }
}

TEST_CASE("performer's published form is the exact one but for its epsilon, and not causal") {
  for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
    const Fixture held = performer(65, 43, {{"form", word("published")}}, pattern);
    // Without an epsilon the stabilisers cancel, and the exact form is left.
    const Fixture free =
        performer(65, 43, {{"form", word("published")}, {"epsilon", 0.0}}, pattern);
    const Fixture exact = performer(65, 43, {}, pattern);
    CHECK(relative_error(free.output("composite"), exact.output("composite")) < 1e-12);
    CHECK(relative_error(held.output("composite"), exact.output("composite")) > 1e-3);
    for (const auto& [role, gradient] : free.gradients("composite")) {
      CHECK(relative_error(gradient, exact.gradients("composite").at(role)) < 1e-11);
    }
  }
  const Fixture causal = performer(9, 5, {{"form", word("published")}});
  const Support answer = causal.entry.supports(causal.options, causal.problem);
  CHECK_FALSE(answer);
  CHECK_THAT(answer.reason, Catch::Contains("is not causal") && Catch::Contains("use form exact"));
}

TEST_CASE("performer's scan, chunks and kernel make their features as they go") {
  Problem problem;
  problem.head_dim = problem.value_dim = 16;
  problem.gradient = true;
  for (const char* kernel : {"softmax", "relu"}) {
    for (const std::string name : {"scan", "chunked", "fused"}) {
      const auto workspace = [&](std::int64_t length) {
        problem.length = problem.key_length = length;
        const auto mechanism = made(problem, {{"kernel", std::string(kernel)}});
        Inputs inputs;
        for (const char* role : {"query", "key", "value"}) {
          inputs.tensors[role] = at::randn({1, 1, length, 16}).requires_grad_(true);
        }
        const auto& implementation = test::registry().entry("performer").implementation(name);
        const test::MemoryCount memory;
        const at::Tensor y = implementation.mix(*mechanism, inputs, nullptr).output;
        const auto output = static_cast<std::int64_t>(y.nbytes());
        CHECK(memory.live() - output < 1024);
        const double predicted = implementation.cost(mechanism->options, problem).workspace_bytes;
        CAPTURE(kernel, name, memory.peak() - output, predicted);
        CHECK(static_cast<double>(memory.peak() - output) < 1.5 * predicted);
        CHECK(static_cast<double>(memory.peak() - output) > 0.6 * predicted);
        return memory.peak() - output;
      };
      CHECK(workspace(2048) == workspace(4096));
    }
  }
}

TEST_CASE("performer's kernel without an order: what it takes, and what it refuses") {
  Problem problem;
  problem.heads = 2;
  problem.head_dim = problem.value_dim = 16;
  problem.pattern = Pattern::bidirectional;
  const Entry entry = test::registry().entry("performer");
  const auto& fused = entry.implementation("fused");
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16}) {
    problem.dtype = dtype;
    problem.length = problem.key_length = 1024;
    const auto mechanism = made(problem, {{"features", count(70)}});
    Inputs inputs;
    for (const char* role : {"query", "key", "value"}) {
      inputs.tensors[role] = at::randn({1, 2, 1024, 16}).to(scalar_type(dtype));
    }
    const at::NoGradGuard no_grad;
    const test::MemoryCount memory;
    const at::Tensor y = fused.mix(*mechanism, inputs, nullptr).output;
    const auto taken = memory.peak() - static_cast<std::int64_t>(y.nbytes());
    const double predicted = fused.cost(mechanism->options, problem).workspace_bytes;
    CAPTURE(to_string(dtype), taken, predicted);
    CHECK(static_cast<double>(taken) < 1.05 * predicted);
    CHECK(static_cast<double>(taken) > 0.95 * predicted);
  }
  for (const Overrides& said :
       {Overrides{{"kernel", word("relu")}}, Overrides{{"form", word("published")}}}) {
    const Options options = entry.derive(Options::resolve(entry.options, said), problem);
    const Support answer = fused.supports(options, problem);
    CHECK_FALSE(answer);
    CHECK_THAT(answer.reason, Catch::Contains("use composite"));
  }
}

}  // namespace attnbench
