// Latte's implementations against its definition, and what must hold of it whatever computes it.
#include "tests/attention/held_to_reference.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace mechanisms {
Entry latte();
}
namespace reference {
Reference latte();
}

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
  return {mechanisms::latte(),
          reference::latte(),
          problem,
          {{"latents_per_head", latents}, {"chunk", chunk}},
          scale};
}

std::vector<std::string> implementations() {
  std::vector<std::string> names;
  for (const auto& implementation : mechanisms::latte().implementations) {
    names.push_back(implementation.name);
  }
  return names;
}

}  // namespace

TEST_CASE("every form of latte equals its definition") {
  for (const std::int64_t length : {1, 2, 3, 63, 64, 65, 197}) {
    for (const auto& name : implementations()) {
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
  for (const auto& name : implementations()) {
    CAPTURE(name);
    const Held both = latte(65, 7, 43, Pattern::bidirectional);
    CHECK(relative_error(both.output(name), both.expected()) < 1e-12);
    Held cross = latte(9, 7, 5, Pattern::cross);
    Problem problem = cross.problem;
    problem.key_length = 31;
    const Held wide(mechanisms::latte(), reference::latte(), problem, {});
    CHECK(relative_error(wide.output(name), wide.expected()) < 1e-12);
  }
}

TEST_CASE("latte's gradients are those of its definition") {
  for (const auto& name : implementations()) {
    for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
      const Held held = latte(37, 3, 5, pattern, 1, 16);
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
