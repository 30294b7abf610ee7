// Latte's latte_implementations against its definition, and what must hold of it whatever computes
// it.

#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;

Held latte(std::int64_t length, std::int64_t latents, std::int64_t width,
           Pattern pattern = Pattern::causal, double scale = 1, std::int64_t chunk = 64) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 2;
  problem.length = length;
  problem.key_length = length;
  problem.head_dim = problem.value_dim = width;
  problem.pattern = pattern;
  return {"latte", problem, {{"latents_per_head", latents}, {"chunk", chunk}}, scale};
}

std::vector<std::string> latte_implementations() { return test::implementations_of("latte"); }

}  // namespace

TEST_CASE("every form of latte equals its definition") {
  for (const std::int64_t length : {1, 2, 3, 63, 64, 65, 197}) {
    for (const auto& name : latte_implementations()) {
      CAPTURE(length, name);
      const Held plain = latte(length, 7, 43);
      CHECK(relative_error(plain.output(name), plain.expected()) < 1e-12);
      CHECK(relative_error(plain.output(name, at::kFloat), plain.expected()) < 2e-6);
      const Held single = latte(length, 1, 5);
      CHECK(relative_error(single.output(name), single.expected()) < 1e-12);
    }
  }
}

TEST_CASE("bidirectional and cross latte equal the definition") {
  for (const auto& name : latte_implementations()) {
    CAPTURE(name);
    const Held both = latte(65, 7, 43, Pattern::bidirectional);
    CHECK(relative_error(both.output(name), both.expected()) < 1e-12);
    Held cross = latte(9, 7, 5, Pattern::cross);
    Problem problem = cross.problem;
    problem.key_length = 31;
    const Held wide("latte", problem, {});
    CHECK(relative_error(wide.output(name), wide.expected()) < 1e-12);
  }
}

TEST_CASE("latte's gradients are those of its definition") {
  for (const auto& name : latte_implementations()) {
    for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
      const Held held = latte(37, 3, 5, pattern, 1, 16);
      CAPTURE(to_string(pattern));
      test::check_gradients(held, name);
    }
  }
}

TEST_CASE("latte splits its latents over the heads, and refuses contradictions") {
  Problem problem;
  problem.heads = problem.kv_heads = 4;
  problem.head_dim = problem.value_dim = 8;
  const Entry entry = test::registry().entry("latte");
  const auto derived = [&](const std::map<std::string, OptionValue>& said) {
    const Options options = entry.derive(Options::resolve(entry.options, said), problem);
    return std::pair(options.integer("latents_total"), options.integer("latents_per_head"));
  };
  using test::Said;
  const auto value = [](std::int64_t n) { return OptionValue(n); };
  CHECK(derived({}) == std::pair<std::int64_t, std::int64_t>(32, 8));
  CHECK(derived({{"latents_total", value(40)}}) == std::pair<std::int64_t, std::int64_t>(40, 10));
  CHECK(derived({{"latents_per_head", value(3)}}) == std::pair<std::int64_t, std::int64_t>(12, 3));
  CHECK(derived(Said{{"latents_total", value(12)}, {"latents_per_head", value(3)}}).first == 12);
  CHECK_THROWS_AS(derived({{"latents_total", value(42)}}), UsageError);
  CHECK_THROWS_AS(derived(Said{{"latents_total", value(16)}, {"latents_per_head", value(3)}}),
                  UsageError);
  CHECK_THROWS_AS(derived({{"latents_total", value(-4)}}), UsageError);
  problem.kv_heads = 2;
  CHECK_FALSE(entry.supports(Options::resolve(entry.options, {}), problem));
}

TEST_CASE("latte steps from a state as it runs over the whole, whatever ran before") {
  test::check_steps(latte(90, 7, 5, Pattern::causal, 1, 16), latte_implementations(),
                    {1, 15, 16, 50});
}

TEST_CASE("latte never looks ahead, even at a huge key") {
  for (const auto& name : latte_implementations()) {
    CAPTURE(name);
    Held held = latte(70, 3, 5, Pattern::causal, 1, 16);
    const at::Tensor before = held.output(name, at::kFloat);
    held.inputs.tensors["key_logits"].select(2, 41).mul_(1000);
    held.inputs.tensors["value"].select(2, 41).mul_(1000);
    const at::Tensor after = held.output(name, at::kFloat);
    CHECK(relative_error(after.slice(2, 0, 41), before.slice(2, 0, 41)) < 1e-6);
    CHECK(relative_error(after, held.expected()) < 1e-6);
  }
}

TEST_CASE("padded tokens are as if they were not there") {
  for (const auto& name : latte_implementations()) {
    for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
      test::check_padding(latte(40, 3, 5, pattern, 1, 16), name, {0, 21, {"key_logits", "value"}});
    }
  }
}

TEST_CASE("properties of latte that hold without a reference") {
  for (const auto& name : latte_implementations()) {
    CAPTURE(name);
    // One latent: the query does not matter.
    Held single = latte(70, 1, 5);
    const at::Tensor y = single.output(name);
    single.inputs.tensors["query_logits"].mul_(-3).add_(1);
    CHECK(relative_error(single.output(name), y) < 1e-12);
    // Constant keys: running means.
    Held constant = latte(70, 3, 5);
    constant.inputs.tensors["key_logits"].fill_(2.5);
    const at::Tensor counts = at::arange(1, 71, at::kDouble).view({70, 1});
    CHECK(relative_error(constant.output(name), constant.inputs["value"].cumsum(2) / counts) <
          1e-12);
    // Rows of weights add up to 1.
    Held shifted = latte(70, 3, 5);
    const at::Tensor plain = shifted.output(name);
    shifted.inputs.tensors["value"].add_(7);
    CHECK(relative_error(shifted.output(name), plain + 7) < 1e-12);
    // A constant on a key column or a query row changes nothing, so their gradients add up to 0.
    const auto gradients = latte(70, 3, 5).gradients(name);
    CHECK(gradients.at("key_logits").sum(2).abs().max().item<double>() < 1e-12);
    CHECK(gradients.at("query_logits").sum(3).abs().max().item<double>() < 1e-12);
    // The last causal row sees what every bidirectional row sees.
    const Held both = latte(70, 3, 5, Pattern::bidirectional);
    CHECK(relative_error(plain.select(2, 69), both.output("composite").select(2, 69)) < 1e-12);
  }
}

TEST_CASE("latte with the normalisers in its queries is linear attention with phi = exp") {
  const Held held = latte(70, 6, 5);
  const at::Tensor q = held.inputs["query_logits"];
  const at::Tensor k = held.inputs["key_logits"];
  Held both = held;
  both.inputs.tensors["query_logits"] = q + at::logcumsumexp(k, 2);
  const at::Tensor weights = at::matmul(q.exp(), k.exp().transpose(2, 3)).tril();
  const at::Tensor expected = at::matmul(weights / weights.sum(-1, true), held.inputs["value"]);
  for (const auto& name : latte_implementations()) {
    CAPTURE(name);
    CHECK(relative_error(both.output(name), expected) < 1e-12);
  }
}

TEST_CASE("latte's logit scale multiplies both logits, and 16-bit inputs are summed in 32") {
  for (const auto& name : latte_implementations()) {
    CAPTURE(name);
    const Held plain = latte(300, 3, 5);
    const Held scaled("latte", plain.problem,
                      {{"latents_per_head", std::int64_t{3}}, {"logit_scale", 0.3}});
    CHECK(relative_error(scaled.output(name), scaled.expected()) < 1e-12);
    CHECK(relative_error(scaled.output(name), plain.expected()) > 1e-2);
    Held rounded = plain;
    for (auto& [role, tensor] : rounded.inputs.tensors) {
      tensor = tensor.to(at::kBFloat16).to(at::kDouble);
    }
    CHECK(relative_error(rounded.output(name, at::kBFloat16), rounded.expected()) < 4e-3);
    CHECK(rounded.empty_state(at::kBFloat16)["sum"].scalar_type() == at::kFloat);
  }
}

TEST_CASE("latte: vapor rotates values and output as its definition does, in every pattern") {
  const test::Said turned{{"latents_per_head", test::count(3)},
                          {"chunk", test::count(16)},
                          {"vapor", true},
                          {"rotary_base", 50.0}};
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional, Pattern::cross}) {
    Problem problem = latte(37, 3, 5, pattern).problem;
    if (pattern == Pattern::cross) problem.key_length = 29;
    const Held held("latte", problem, turned);
    const Held still("latte", problem, {{"latents_per_head", test::count(3)}});
    const at::Tensor expected = held.expected();
    CHECK(relative_error(still.expected(), expected) > 1e-2);
    // A last channel without a partner is not rotated.
    CHECK(relative_error(still.expected().select(3, 4), expected.select(3, 4)) < 1e-12);
    for (const auto& name : latte_implementations()) {
      if (!held.entry.implementation(name).supports(held.options, problem)) continue;
      CAPTURE(to_string(pattern), name);
      CHECK(relative_error(held.output(name), expected) < 1e-12);
      test::check_gradients(held, name);
      if (pattern == Pattern::cross) continue;
      test::check_padding(held, name, {30, 37, {"key_logits", "value"}});
    }
    if (pattern == Pattern::causal) test::check_steps(held, latte_implementations(), {1, 20});
  }
}

}  // namespace attnbench
