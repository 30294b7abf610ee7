// What is known of Luna, whatever computes it.
#include <cmath>

#include "attention/layer.hpp"
#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace {

using test::Fixture;
using test::Overrides;
using test::relative_error;

Problem luna_problem(std::int64_t length, std::int64_t width, Pattern pattern = Pattern::causal) {
  Problem problem;
  problem.batch = 2;
  problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = length;
  problem.head_dim = problem.value_dim = width;
  problem.pattern = pattern;
  problem.gradient = true;
  return problem;
}

Fixture luna(const Problem& problem, std::int64_t latents, Overrides said = {}) {
  said["latents_per_head"] = latents;
  if (said.count("chunk") == 0) said["chunk"] = std::int64_t{16};
  return {"luna", problem, said};
}

Fixture luna(std::int64_t length, std::int64_t latents, std::int64_t width,
             Pattern pattern = Pattern::causal) {
  return luna(luna_problem(length, width, pattern), latents);
}

const std::vector<std::string> kForms = {"composite", "scan", "chunked", "fused"};

Mixed mixed(const Fixture& held, bool recorded = false) {
  Problem problem = held.problem;
  problem.dtype = Dtype::float64;
  const auto mechanism = held.entry.make(held.options, problem);
  const at::AutoGradMode record(recorded);
  return held.entry.implementation("composite").mix(*mechanism, held.inputs, nullptr);
}

at::Tensor scaled_softmax(const at::Tensor& q, const at::Tensor& k) {
  return at::softmax(at::matmul(q, k.transpose(-2, -1)) / std::sqrt(double(q.size(-1))), -1);
}

}  // namespace

TEST_CASE("luna's new latents are the pack, with its gradient") {
  Fixture held = luna(luna_problem(23, 5, Pattern::bidirectional), 3);
  const auto pack = [](const Inputs& inputs) {
    const at::Tensor keys = inputs["pack_key"];
    return at::matmul(scaled_softmax(inputs["latent_query"], keys), keys)
        .transpose(1, 2)
        .flatten(2);
  };
  for (auto& [role, tensor] : held.inputs.tensors) tensor.requires_grad_(true);
  const at::Tensor stream = mixed(held, true).latents;
  CHECK(stream.sizes() == at::IntArrayRef({2, 3, 10}));
  CHECK(relative_error(stream, pack(held.inputs)) < 1e-12);
  const at::Tensor upstream = at::randn_like(stream);
  (stream * upstream).sum().backward();
  CHECK_FALSE(held.inputs["query"].grad().defined());
  for (const char* role : {"latent_query", "pack_key"}) {
    CAPTURE(role);
    const at::Tensor gradient = held.inputs[role].grad().clone();
    const at::Tensor direction = at::randn_like(gradient);
    const auto at_step = [&](double step) {
      Inputs moved = held.inputs;
      moved.tensors[role] = held.inputs[role].detach() + step * direction;
      return (pack(moved) * upstream).sum().item<double>();
    };
    const double slope = (at_step(1e-5) - at_step(-1e-5)) / 2e-5;
    CHECK((gradient * direction).sum().item<double>() == Approx(slope).epsilon(1e-6));
  }
  // The causal stream stays as it is: a pack of all tokens would tell of the future.
  CHECK_FALSE(mixed(luna(9, 3, 5)).latents.defined());
}

TEST_CASE("luna packing by the tokens themselves is softmax attention") {
  Fixture held = luna(luna_problem(23, 5, Pattern::bidirectional), 23, {{"tied", false}});
  held.inputs.tensors["latent_query"] = held.inputs["query"];
  const at::Tensor attention = at::matmul(
      scaled_softmax(held.inputs["query"], held.inputs["pack_key"]), held.inputs["pack_value"]);
  CHECK(relative_error(mixed(held).latents, attention.transpose(1, 2).flatten(2)) < 1e-12);
}

TEST_CASE("luna with one slot gives every token the same, or the running mean of its weights") {
  const at::Tensor same = luna(23, 1, 5, Pattern::bidirectional).output("composite");
  CHECK(relative_error(same, same.narrow(2, 0, 1).expand_as(same)) < 1e-14);
  const Fixture held = luna(70, 1, 5);
  const at::Tensor scores =
      at::matmul(held.inputs["pack_key"], held.inputs["latent_query"].transpose(2, 3));
  const at::Tensor weights = at::log2(1 + at::exp2(scores / std::sqrt(5.0)));
  const at::Tensor counts = at::arange(1, 71, at::kDouble).view({70, 1});
  const at::Tensor expected = (weights * held.inputs["key"]).cumsum(2) / counts;
  for (const auto& form : kForms) {
    CHECK(relative_error(held.output(form), expected) < 1e-12);
  }
}

TEST_CASE("luna in a layer: tokens as they are under latte_composed, and seeded weights") {
  const Overrides said{{"latents_per_head", std::int64_t{3}},
                       {"activation", std::string("latte_composed")}};
  const Fixture held = luna(luna_problem(6, 4), 3, said);
  Problem problem = held.problem;
  problem.dtype = Dtype::float64;
  const auto chosen = held.entry.implementation("chunked");
  Layer layer(held.entry.make(held.options, problem), chosen, Scope::layer, 1);
  const at::Tensor x = at::randn({2, 6, 8}, at::kDouble);
  const at::Tensor latents = at::randn({2, 3, 8}, at::kDouble);
  const Inputs inputs = layer.project(x, x, latents);
  CHECK(at::equal(inputs["key"], x.view({2, 6, 2, 4}).transpose(1, 2)));
  CHECK_FALSE(at::equal(inputs["query"], x.view({2, 6, 2, 4}).transpose(1, 2)));
  CHECK(layer.forward(x, x, {}, latents).output.sizes() == x.sizes());

  problem.pattern = Pattern::bidirectional;
  const auto mechanism = held.entry.make(held.options, problem);
  const at::Tensor first = mechanism->named_parameters()["weight_unpack"].detach().clone();
  mechanism->draw_parameters(5);
  CHECK_FALSE(at::equal(first, mechanism->named_parameters()["weight_unpack"]));
  mechanism->draw_parameters(0);
  CHECK(at::equal(first, mechanism->named_parameters()["weight_unpack"]));
}

}  // namespace attnbench
