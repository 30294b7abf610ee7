// What is known of Latte, whatever computes it.
#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace {

using test::Fixture;
using test::relative_error;

Fixture latte(std::int64_t length, std::int64_t latents, std::int64_t width) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 2;
  problem.length = length;
  problem.key_length = length;
  problem.head_dim = problem.value_dim = width;
  return {"latte", problem, {{"latents_per_head", latents}}};
}

std::vector<std::string> latte_implementations() { return test::implementations_of("latte"); }

}  // namespace

TEST_CASE("properties of latte that hold without a reference") {
  for (const auto& name : latte_implementations()) {
    CAPTURE(name);
    // One latent: the query does not matter.
    Fixture single = latte(70, 1, 5);
    const at::Tensor y = single.output(name);
    single.inputs.tensors["query_logits"].mul_(-3).add_(1);
    CHECK(relative_error(single.output(name), y) < 1e-12);
    // Constant keys: running means.
    Fixture constant = latte(70, 3, 5);
    constant.inputs.tensors["key_logits"].fill_(2.5);
    const at::Tensor counts = at::arange(1, 71, at::kDouble).view({70, 1});
    CHECK(relative_error(constant.output(name), constant.inputs["value"].cumsum(2) / counts) <
          1e-12);
    // A constant on a key column or a query row changes nothing, so their gradients add up to 0.
    const auto gradients = latte(70, 3, 5).gradients(name);
    CHECK(gradients.at("key_logits").sum(2).abs().max().item<double>() < 1e-12);
    CHECK(gradients.at("query_logits").sum(3).abs().max().item<double>() < 1e-12);
  }
}

TEST_CASE("latte with the normalisers in its queries is linear attention with phi = exp") {
  const Fixture held = latte(70, 6, 5);
  const at::Tensor q = held.inputs["query_logits"];
  const at::Tensor k = held.inputs["key_logits"];
  Fixture both = held;
  both.inputs.tensors["query_logits"] = q + at::logcumsumexp(k, 2);
  const at::Tensor weights = at::matmul(q.exp(), k.exp().transpose(2, 3)).tril();
  const at::Tensor expected = at::matmul(weights / weights.sum(-1, true), held.inputs["value"]);
  for (const auto& name : latte_implementations()) {
    CAPTURE(name);
    CHECK(relative_error(both.output(name), expected) < 1e-12);
  }
}

}  // namespace attnbench
