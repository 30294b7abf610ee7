// What is known of Perceiver, whatever computes it.
#include <cmath>

#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace {

using test::Fixture;
using test::relative_error;

Fixture perceiver(std::int64_t length, std::int64_t latents, std::int64_t width,
                  Pattern pattern = Pattern::causal) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 2;
  problem.length = length;
  problem.head_dim = width;
  problem.value_dim = width + 2;
  problem.pattern = pattern;
  return {"perceiver", problem, {{"latents_per_head", latents}, {"chunk", std::int64_t{16}}}};
}

const std::vector<std::string> kPerceiverForms = {"composite", "scan", "chunked"};

/// The new latent stream, [B, H, L, Dv].
at::Tensor latents_of(const Fixture& held, const Inputs& inputs) {
  Problem problem = held.problem;
  problem.dtype = Dtype::float64;
  const auto mechanism = held.entry.make(held.options, problem);
  const at::Tensor stream =
      held.entry.implementation("composite").mix(*mechanism, inputs, nullptr).latents;
  return stream.view({2, stream.size(1), 2, problem.value_dim}).transpose(1, 2);
}

}  // namespace

TEST_CASE("perceiver's latents: a mean, a softmax, and no order of the tokens") {
  const Fixture held = perceiver(23, 3, 5, Pattern::bidirectional);
  const at::Tensor latents = latents_of(held, held.inputs);
  // The encode is softmax attention of the latents.
  const auto softmax = [](const Inputs& inputs, const char* query) {
    const at::Tensor logits =
        at::matmul(inputs[query], inputs["key"].transpose(2, 3)) / std::sqrt(5.0);
    return at::matmul(at::softmax(logits, -1), inputs["value"]);
  };
  CHECK(relative_error(latents, softmax(held.inputs, "latent_query")) < 1e-12);
  // As many latents as tokens, asking what the tokens ask: softmax attention.
  Fixture asked = perceiver(23, 23, 5, Pattern::bidirectional);
  asked.inputs.tensors["latent_query"] = asked.inputs["query"];
  CHECK(relative_error(latents_of(asked, asked.inputs), softmax(asked.inputs, "query")) < 1e-12);
  // Keys in another order, with their values.
  Inputs moved = held.inputs;
  for (const char* role : {"key", "value"}) {
    moved.tensors[role] = moved[role].roll({7}, {2}).flip({2});
  }
  CHECK(relative_error(latents_of(held, moved), latents) < 1e-12);
  // One latent, constant keys: the mean of the values, running in the causal pattern.
  for (const auto& form : kPerceiverForms) {
    Fixture constant = perceiver(70, 1, 5);
    constant.inputs.tensors["key"].fill_(0.7);
    const at::Tensor counts = at::arange(1, 71, at::kDouble).view({70, 1});
    CHECK(relative_error(constant.output(form), constant.inputs["value"].cumsum(2) / counts) <
          1e-12);
  }
  Fixture constant = perceiver(70, 1, 5, Pattern::bidirectional);
  constant.inputs.tensors["key"].fill_(0.7);
  CHECK(relative_error(latents_of(constant, constant.inputs),
                       constant.inputs["value"].mean(2, true)) < 1e-12);
}

TEST_CASE("perceiver's latents carry gradients, and the causal stream stays as it is") {
  const Fixture held = perceiver(23, 3, 5, Pattern::bidirectional);
  Inputs leaves = held.inputs;
  for (auto& [role, tensor] : leaves.tensors) tensor = tensor.clone().requires_grad_(true);
  const at::Tensor upstream = at::randn({2, 2, 3, 7}, at::kDouble);
  (latents_of(held, leaves) * upstream).sum().backward();
  for (const char* role : {"latent_query", "key", "value"}) {
    const at::Tensor direction = at::randn_like(leaves[role]);
    const auto at_step = [&](double step) {
      Inputs moved = held.inputs;
      moved.tensors[role] = held.inputs[role] + step * direction;
      return (latents_of(held, moved) * upstream).sum().item<double>();
    };
    CAPTURE(role);
    const double slope = (at_step(1e-5) - at_step(-1e-5)) / 2e-5;
    CHECK((leaves[role].grad() * direction).sum().item<double>() == Approx(slope).epsilon(1e-6));
  }
  const Fixture causal = perceiver(9, 3, 5);
  const auto mechanism = causal.entry.make(causal.options, causal.problem);
  const auto& mix = causal.entry.implementation("composite").mix;
  CHECK_FALSE(mix(*mechanism, causal.inputs, nullptr).latents.defined());
}

}  // namespace attnbench
