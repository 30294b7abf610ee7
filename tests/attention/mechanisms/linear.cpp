// Linear attention's implementations against the definition, and what must hold of it.
#include "tests/attention/held_to_reference.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace mechanisms {
Entry linear();
}
namespace reference {
Reference linear();
}

namespace {

using test::Held;
using test::relative_error;

Held linear(std::int64_t length, std::int64_t width, Pattern pattern = Pattern::causal,
            double scale = 1, std::int64_t chunk = 64) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 2;
  problem.length = length;
  problem.key_length = pattern == Pattern::cross ? length + 7 : length;
  problem.head_dim = width;
  problem.value_dim = width + 2;
  problem.pattern = pattern;
  return {mechanisms::linear(), reference::linear(), problem, {{"chunk", chunk}}, scale};
}

std::vector<std::string> implementations() {
  std::vector<std::string> names;
  for (const auto& implementation : mechanisms::linear().implementations) {
    names.push_back(implementation.name);
  }
  return names;
}

}  // namespace

TEST_CASE("every form of linear attention equals its definition") {
  for (const std::int64_t length : {1, 2, 3, 63, 64, 65, 197}) {
    for (const auto& name : implementations()) {
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
  for (const auto& name : implementations()) {
    for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
      CAPTURE(name, to_string(pattern));
      const Held held = linear(65, 43, pattern);
      CHECK(relative_error(held.output(name), held.expected()) < 1e-12);
    }
  }
}

TEST_CASE("linear attention's gradients are those of its definition") {
  for (const auto& name : implementations()) {
    for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional, Pattern::cross}) {
      const Held held = linear(37, 5, pattern, 1, 16);
      const auto gradients = held.gradients(name);
      for (const auto& [role, gradient] : gradients) {
        CAPTURE(name, role, to_string(pattern));
        const at::Tensor direction = at::randn_like(gradient);
        const double slope = held.slope(role, direction);
        CHECK((gradient * direction).sum().item<double>() == Approx(slope).epsilon(1e-6));
      }
    }
  }
}

}  // namespace attnbench
