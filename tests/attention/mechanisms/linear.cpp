// Linear attention's linear_implementations against the definition, and what must hold of it.

#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;

Held linear(std::int64_t length, std::int64_t width, Pattern pattern = Pattern::causal,
            double scale = 1, std::int64_t chunk = 64) {
  return {"linear", test::two_by_two(length, width, pattern), {{"chunk", chunk}}, scale};
}

std::vector<std::string> linear_implementations() { return test::implementations_of("linear"); }

}  // namespace

TEST_CASE("every form of linear attention equals its definition") {
  for (const std::int64_t length : {1, 2, 3, 63, 64, 65, 197}) {
    for (const auto& name : linear_implementations()) {
      CAPTURE(length, name);
      const Held odd = linear(length, 43);
      CHECK(relative_error(odd.output(name), odd.expected()) < 1e-12);
      CHECK(relative_error(odd.output(name, at::kFloat), odd.expected()) < 2e-6);
      const Held thin = linear(length, 1);
      CHECK(relative_error(thin.output(name), thin.expected()) < 1e-12);
    }
  }
}

TEST_CASE("bidirectional and cross linear attention equal the definition") {
  for (const auto& name : linear_implementations()) {
    for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
      CAPTURE(name, to_string(pattern));
      const Held held = linear(65, 43, pattern);
      CHECK(relative_error(held.output(name), held.expected()) < 1e-12);
    }
  }
}

TEST_CASE("linear attention's gradients are those of its definition") {
  for (const auto& name : linear_implementations()) {
    for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional, Pattern::cross}) {
      const Held held = linear(37, 5, pattern, 1, 16);
      CAPTURE(to_string(pattern));
      test::check_gradients(held, name);
    }
  }
}

TEST_CASE("linear attention steps from a state as it runs over the whole") {
  test::check_steps(linear(90, 5, Pattern::causal, 1, 16), linear_implementations(), {1, 16, 50});
}

TEST_CASE("linear attention's future does not touch the past, nor does its padding") {
  for (const auto& name : linear_implementations()) {
    CAPTURE(name);
    Held held = linear(70, 5, Pattern::causal, 1, 16);
    const at::Tensor before = held.output(name, at::kFloat);
    held.inputs.tensors["key"].select(2, 41).mul_(1000);
    held.inputs.tensors["value"].select(2, 41).mul_(1000);
    CHECK(relative_error(held.output(name, at::kFloat).slice(2, 0, 41), before.slice(2, 0, 41)) <
          1e-6);
    for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
      test::check_padding(linear(40, 5, pattern, 1, 16), name, {0, 21, {"key", "value"}});
    }
  }
}

TEST_CASE("properties of linear attention that hold without a reference") {
  for (const auto& name : linear_implementations()) {
    CAPTURE(name);
    Held shifted = linear(70, 5);
    const at::Tensor plain = shifted.output(name);
    shifted.inputs.tensors["value"].add_(7);
    CHECK(relative_error(shifted.output(name), plain + 7) < 1e-6);
    const Held both = linear(70, 5, Pattern::bidirectional);
    CHECK(relative_error(plain.select(2, 69), both.output("composite").select(2, 69)) < 1e-12);
    // Without epsilon a scaled phi(q) or phi(k) changes nothing: phi . dphi = 0, where
    // dx = dphi min(phi, 1).
    const Held free("linear", shifted.problem, {{"epsilon", 0.0}});
    const auto gradients = free.gradients(name);
    const auto along = [&](const std::string& role) {
      const at::Tensor x = free.inputs[role];
      const at::Tensor phi = at::elu(x) + 1;
      return phi * gradients.at(role) / phi.clamp_max(1);
    };
    CHECK(along("query").sum(-1).abs().max().item<double>() < 1e-11);
    CHECK(along("key").sum({2, 3}).abs().max().item<double>() < 1e-11);
  }
}

}  // namespace attnbench
