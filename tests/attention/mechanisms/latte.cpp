// What is known of Latte, whatever computes it; and of heads that share keys, in Macchiato, too.
#include "attention/layer.hpp"
#include "attention/shape_inference.hpp"
#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::count;
using test::Fixture;
using test::Overrides;
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

/// A mechanism of four heads that share `kv_heads` key heads, with chunks of which there are
/// several.
struct SharedHeads {
  SharedHeads(const std::string& name, std::int64_t kv_heads, Pattern pattern, Overrides said = {})
      : entry(test::registry().entry(name)) {
    problem.batch = 2;
    problem.heads = 4;
    problem.kv_heads = kv_heads;
    problem.length = problem.key_length = 45;
    if (pattern == Pattern::cross) problem.key_length = 30;
    problem.head_dim = 6;
    problem.value_dim = 5;
    problem.pattern = pattern;
    problem.dtype = Dtype::float64;
    said.insert({{"latents_per_head", count(7)}, {"chunk", count(8)}});
    options = entry.derive(Options::resolve(entry.options, said), problem);
    mechanism = entry.make(options, problem);
    inputs = random_inputs(*mechanism, 5, 1, true);
  }

  at::Tensor output(const std::string& implementation) const {
    return entry.implementation(implementation).mix(*mechanism, inputs, nullptr).output;
  }

  const Entry& entry;
  Problem problem;
  Options options;
  std::shared_ptr<Mechanism> mechanism;
  Inputs inputs;
};

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

TEST_CASE("heads that share keys are heads with the same keys", "[latte][macchiato]") {
  for (const std::string name : {"latte", "macchiato"}) {
    Overrides said;
    if (name == "macchiato") said = {{"window", Window{5, 0}}, {"rotary", true}};
    said["vapor"] = true;
    for (const std::int64_t kv_heads : {1, 2}) {
      for (const Pattern pattern : test::registry().entry(name).patterns) {
        const SharedHeads shared(name, kv_heads, pattern, said);
        SharedHeads own(name, 4, pattern, said);
        for (const auto& implementation : test::implementations_of(name)) {
          const auto& form = shared.entry.implementation(implementation);
          if (!form.supports(shared.options, shared.problem)) continue;
          std::vector<at::Tensor> leaves;
          for (auto& [role, tensor] : own.inputs.tensors) {
            const at::Tensor& given = shared.inputs[role];
            leaves.push_back(given);
            tensor = given.repeat_interleave(4 / given.size(1), 1);
          }
          CAPTURE(name, kv_heads, to_string(pattern), implementation);
          const at::Tensor y = shared.output(implementation), want = own.output(implementation);
          CHECK(relative_error(y, want) < 1e-14);
          const at::Tensor upstream = at::randn(y.sizes(), y.options());
          const auto found = torch::autograd::grad({y}, leaves, {upstream});
          const auto expected = torch::autograd::grad({want}, leaves, {upstream});
          for (std::size_t i = 0; i < leaves.size(); ++i) {
            CHECK(relative_error(found[i], expected[i]) < 1e-13);
          }
        }
      }
    }
  }
}

TEST_CASE("a state has sums for each latent and key head", "[latte][macchiato]") {
  const at::NoGradGuard no_grad;
  for (const std::string name : {"latte", "macchiato"}) {
    Overrides said;
    if (name == "macchiato") said = {{"window", Window{5, 0}}};
    const SharedHeads own(name, 4, Pattern::causal, said);
    const auto bytes = [](const SharedHeads& held) {
      return held.mechanism->empty_state(2, 45, at::TensorOptions(at::kDouble)).bytes();
    };
    for (const std::int64_t kv_heads : {1, 2}) {
      const SharedHeads shared(name, kv_heads, Pattern::causal, said);
      CHECK(bytes(shared) == bytes(own) * kv_heads / 4);
      for (const auto& implementation : test::implementations_of(name)) {
        CAPTURE(name, kv_heads, implementation);
        const auto& form = shared.entry.implementation(implementation);
        CHECK(form.cost(shared.options, shared.problem).state_bytes ==
              static_cast<double>(bytes(shared)));
        State state = shared.mechanism->empty_state(2, 45, at::TensorOptions(at::kDouble));
        std::vector<at::Tensor> outputs;
        for (std::int64_t t = 0; t < 45; t += t < 20 ? 20 : 1) {
          Inputs part;
          const std::int64_t tokens = t < 20 ? 20 : 1;
          for (const auto& [role, tensor] : shared.inputs.tensors) {
            part.tensors[role] = tensor.narrow(2, t, tokens);
          }
          outputs.push_back(form.mix(*shared.mechanism, part, &state).output);
        }
        CHECK(relative_error(at::cat(outputs, 2), shared.output(implementation)) < 1e-13);
        CHECK(state["sum"].size(1) == kv_heads);
      }
    }
  }
}

TEST_CASE("heads that share keys cost their reads, and an update for each key head", "[latte]") {
  const SharedHeads own("latte", 4, Pattern::causal), shared("latte", 2, Pattern::causal);
  const double tokens = 2 * 45, latents = 7, values = 5;
  for (const auto& name : test::implementations_of("latte")) {
    CAPTURE(name);
    const auto cost = [&](const SharedHeads& held) {
      return held.entry.implementation(name).cost(held.options, held.problem);
    };
    CHECK(cost(own).model_flops == 4 * tokens * 4 * latents * values);
    CHECK(cost(shared).model_flops == 2 * tokens * (4 + 2) * latents * values);
    CHECK(cost(shared).executed_flops >= cost(shared).model_flops);
    CHECK(cost(shared).minimal_bytes == 8 * tokens * (4 + 2) * (latents + values));
  }
}

TEST_CASE("latte and macchiato take as many latents for key heads as for heads", "[latte]") {
  const auto infer = [](const std::string& name, std::int64_t key_heads, std::int64_t latents) {
    arrays::InputArrays given;
    const auto add = [&](const char* role, const arrays::Shape& shape) {
      given.roles[role] = {std::string(role) + ".npy", arrays::Element::float64, shape};
    };
    add("query_logits", {1, 4, 9, name == "latte" ? 7 : 8});
    add("key_logits", {1, key_heads, 9, latents});
    add("value", {1, key_heads, 9, 5});
    if (name == "macchiato") {
      add("local_query", {1, 4, 9, 6});
      add("local_key", {1, key_heads, 9, 6});
    }
    return infer_shapes(test::registry().entry(name), {}, Pattern::causal, false, given);
  };
  for (const std::string name : {"latte", "macchiato"}) {
    CAPTURE(name);
    const Inferred found = infer(name, 2, 7);
    CHECK(found.problem.kv_heads == 2);
    CHECK(found.options.integer("latents_per_head") == 7);
    CHECK(found.options.integer("latents_total") == 28);
    CHECK_THROWS_WITH(infer(name, 2, 14), Catch::Contains("expected [1, 2, 9, ") ||
                                              Catch::Contains("expected [1, 4, 9, "));
    CHECK_THROWS_WITH(infer(name, 3, 7), Catch::Contains("divides that of the query heads"));
  }
}

}  // namespace attnbench
