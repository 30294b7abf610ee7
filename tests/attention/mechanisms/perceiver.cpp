// Perceiver's implementations against its definition, and what must hold whatever computes it.
#include <cmath>

#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;

Held perceiver(std::int64_t length, std::int64_t latents, std::int64_t width,
               Pattern pattern = Pattern::causal, std::int64_t keys = 0, double scale = 0) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 2;
  problem.length = length;
  problem.key_length = keys;
  problem.head_dim = width;
  problem.value_dim = width + 2;
  problem.pattern = pattern;
  return {"perceiver",
          problem,
          {{"latents_per_head", latents}, {"chunk", std::int64_t{16}}, {"scale", scale}}};
}

const std::vector<std::string> kPerceiverForms = {"composite", "scan", "chunked"};
// Without an order.
const std::vector<std::string> kPerceiverWhole = {"composite", "fused"};

/// The new latent stream, [B, H, L, Dv].
at::Tensor latents_of(const Held& held, const Inputs& inputs) {
  Problem problem = held.problem;
  problem.dtype = Dtype::float64;
  const auto mechanism = held.entry.make(held.options, problem);
  const at::Tensor stream =
      held.entry.implementation("composite").mix(*mechanism, inputs, nullptr).latents;
  return stream.view({2, stream.size(1), 2, problem.value_dim}).transpose(1, 2);
}

}  // namespace

TEST_CASE("every form of perceiver equals its definition") {
  for (const auto& form : kPerceiverForms) {
    for (const std::int64_t length : {1, 3, 64, 65, 257}) {
      CAPTURE(length, form);
      const Held plain = perceiver(length, 7, length == 257 ? 11 : 43);
      const at::Tensor expected = plain.expected();
      CHECK(relative_error(plain.output(form), expected) < 1e-12);
      CHECK(relative_error(plain.output(form, at::kFloat), expected) < 2e-6);
      const Held single = perceiver(length, 1, 5);
      CHECK(relative_error(single.output(form), single.expected()) < 1e-12);
    }
    const Held scaled = perceiver(40, 3, 5, Pattern::causal, 0, 1.5);
    CHECK(relative_error(scaled.output(form), scaled.expected()) < 1e-12);
    CHECK(relative_error(scaled.output(form), perceiver(40, 3, 5).expected()) > 1e-2);
  }
  for (const std::int64_t length : {1, 3, 65}) {
    const Held both = perceiver(length, 7, 43, Pattern::bidirectional);
    for (const auto& form : kPerceiverWhole) {
      CHECK(relative_error(both.output(form), both.expected()) < 1e-12);
      CHECK(relative_error(both.output(form, at::kFloat), both.expected()) < 5e-6);
    }
    const Held cross = perceiver(length, 7, 5, Pattern::cross, 31);
    for (const auto& form : kPerceiverWhole) {
      CHECK(relative_error(cross.output(form), cross.expected()) < 1e-12);
    }
  }
}

TEST_CASE("perceiver's gradients are those of its definition") {
  for (const auto& form : kPerceiverForms) test::check_gradients(perceiver(37, 3, 5), form, 1e-8);
  const Held single = perceiver(5, 3, 5, Pattern::cross, 1);
  CHECK_FALSE(single.entry.implementation("fused").supports(single.options, single.problem));
  for (const auto& form : kPerceiverWhole) {
    test::check_gradients(perceiver(37, 3, 5, Pattern::bidirectional), form, 1e-8);
    test::check_gradients(perceiver(9, 3, 5, Pattern::cross, 31), form, 1e-8);
  }
}

TEST_CASE("perceiver's running maximum may rise by hundreds within a chunk") {
  for (const double ramp : {3.0, 40.0, -40.0}) {
    Held held = perceiver(70, 3, 5);
    const at::Tensor tokens = at::arange(70, at::kDouble).view({70, 1});
    // Small steps of one direction make ramps of the scores and leave the products readable.
    held.inputs.tensors["latent_query"].select(3, 0).fill_(ramp * std::sqrt(5.0));
    held.inputs.tensors["key"].select(3, 0).copy_(tokens.view({70}).expand({2, 2, 70}));
    held.inputs.tensors["query"].select(3, 0).fill_(0.1);
    const at::Tensor expected = held.expected();
    for (const auto& form : kPerceiverForms) {
      CAPTURE(ramp, form);
      CHECK(relative_error(held.output(form), expected) < 1e-12);
      CHECK(relative_error(held.output(form, at::kFloat), expected) < 1e-4);
      test::check_gradients(held, form, 1e-8);
    }
  }
}

TEST_CASE("perceiver's latents: a mean, a softmax, and no order of the tokens") {
  const Held held = perceiver(23, 3, 5, Pattern::bidirectional);
  const at::Tensor latents = latents_of(held, held.inputs);
  // The encode is softmax attention of the latents.
  const auto softmax = [](const Inputs& inputs, const char* query) {
    const at::Tensor logits =
        at::matmul(inputs[query], inputs["key"].transpose(2, 3)) / std::sqrt(5.0);
    return at::matmul(at::softmax(logits, -1), inputs["value"]);
  };
  CHECK(relative_error(latents, softmax(held.inputs, "latent_query")) < 1e-12);
  // As many latents as tokens, asking what the tokens ask: softmax attention.
  Held asked = perceiver(23, 23, 5, Pattern::bidirectional);
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
    Held constant = perceiver(70, 1, 5);
    constant.inputs.tensors["key"].fill_(0.7);
    const at::Tensor counts = at::arange(1, 71, at::kDouble).view({70, 1});
    CHECK(relative_error(constant.output(form), constant.inputs["value"].cumsum(2) / counts) <
          1e-12);
  }
  Held constant = perceiver(70, 1, 5, Pattern::bidirectional);
  constant.inputs.tensors["key"].fill_(0.7);
  CHECK(relative_error(latents_of(constant, constant.inputs),
                       constant.inputs["value"].mean(2, true)) < 1e-12);
}

TEST_CASE("perceiver's latents carry gradients, and the causal stream stays as it is") {
  const Held held = perceiver(23, 3, 5, Pattern::bidirectional);
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
  const Held causal = perceiver(9, 3, 5);
  const auto mechanism = causal.entry.make(causal.options, causal.problem);
  const auto& mix = causal.entry.implementation("composite").mix;
  CHECK_FALSE(mix(*mechanism, causal.inputs, nullptr).latents.defined());
}

TEST_CASE("perceiver steps from a state as it runs over the whole, whatever ran before") {
  test::check_steps(perceiver(90, 7, 5), kPerceiverForms, {1, 15, 16, 50});
}

TEST_CASE("perceiver's single steps over 2,000 tokens are the whole in double") {
  const Held held = perceiver(2000, 3, 5);
  State state = held.empty_state();
  const std::int64_t bytes = state.bytes();
  std::vector<at::Tensor> outputs;
  for (std::int64_t t = 0; t < 2000; ++t) {
    outputs.push_back(held.step("chunked", state, t, t + 1));
  }
  CHECK(relative_error(at::cat(outputs, 2), held.output("composite")) < 1e-12);
  CHECK(state.bytes() == bytes);
  // Keys and values of every latent, a maximum and a normaliser.
  CHECK(bytes == 2 * 2 * 3 * (5 + 7 + 2) * 8);
}

TEST_CASE("padded tokens are in no latent of perceiver") {
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
    for (const auto& form : pattern == Pattern::causal ? kPerceiverForms : kPerceiverWhole) {
      test::check_padding(perceiver(40, 3, 5, pattern), form, {0, 21, {"key", "value"}});
    }
  }
}

TEST_CASE("perceiver has 32 latents a head unless said, and sums 16-bit inputs in 32") {
  const Entry entry = test::registry().entry("perceiver");
  Problem problem;
  problem.heads = problem.kv_heads = 4;
  const auto derived = entry.derive(Options::resolve(entry.options, {}), problem);
  CHECK(derived.integer("latents_per_head") == 32);
  CHECK(derived.integer("latents_total") == 128);
  problem.kv_heads = 2;
  CHECK_FALSE(entry.supports(derived, problem));
  for (const auto& form : kPerceiverForms) {
    Held rounded = perceiver(300, 3, 5);
    for (auto& [role, tensor] : rounded.inputs.tensors) {
      tensor = tensor.to(at::kBFloat16).to(at::kDouble);
    }
    CHECK(relative_error(rounded.output(form, at::kBFloat16), rounded.expected()) < 4e-3);
    CHECK(rounded.empty_state(at::kBFloat16)["sum"].scalar_type() == at::kFloat);
  }
  CHECK_THROWS_AS(perceiver(8, 3, 5, Pattern::bidirectional).empty_state(), UnsupportedError);
}

}  // namespace attnbench
