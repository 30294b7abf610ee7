#include "tests/attention/held_checks.hpp"

#include <algorithm>
#include <limits>

#include "tests/support/catch.hpp"

namespace attnbench::test {

void check_gradients(const Held& held, const std::string& implementation, double margin) {
  const auto gradients = held.gradients(implementation);
  CHECK_FALSE(gradients.empty());
  for (const auto& [role, gradient] : gradients) {
    CAPTURE(implementation, role);
    const at::Tensor direction = at::randn_like(gradient);
    const double slope = held.slope(role, direction);
    // What slopes along random directions usually are: one may be small by chance alone.
    const double usual = gradient.norm().item<double>();
    CHECK((gradient * direction).sum().item<double>() ==
          Approx(slope).epsilon(1e-6).margin(std::max(margin, 1e-7 * usual)));
  }
}

void check_steps(const Held& held, const std::vector<std::string>& implementations,
                 const std::vector<std::int64_t>& prefills) {
  const std::int64_t all = held.problem.length;
  const at::Tensor whole = held.expected();
  for (const auto& prefill : implementations) {
    for (const auto& next : implementations) {
      for (const std::int64_t length : prefills) {
        CAPTURE(prefill, next, length);
        State state = held.empty_state();
        held.step(prefill, state, 0, length);
        State branch = state.clone();
        const at::Tensor token = held.step(next, branch, length, length + 1);
        const at::Tensor block = held.step(next, branch, length + 1, all);
        CHECK(relative_error(at::cat({token, block}, 2), whole.slice(2, length, all)) < 1e-12);
        CHECK(branch.position == all);
        CHECK(state.position == length);
      }
    }
  }
}

void check_padding(const Held& held, const std::string& implementation, const Padding& padding) {
  CAPTURE(implementation, to_string(held.problem.pattern));
  Held clean = held;
  clean.inputs.key_mask = at::ones({2, held.problem.key_length}, at::kBool);
  clean.inputs.key_mask[0].slice(0, padding.begin, padding.end).fill_(false);
  clean.inputs.key_mask[1].fill_(false);
  Held spoiled = clean;
  const auto own = [&](const std::string& role) -> at::Tensor& {
    at::Tensor& tensor = spoiled.inputs.tensors.at(role);
    return tensor = tensor.clone();
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& role : padding.roles) {
    at::Tensor& tensor = own(role);
    tensor[0].slice(1, padding.begin, padding.end).fill_(nan);
    tensor[1].fill_(nan);
  }
  for (const auto& role : padding.in_second_only) own(role)[1].fill_(nan);

  const at::Tensor output = spoiled.output(implementation);
  CHECK(relative_error(output, clean.expected()) < 1e-12);
  CHECK(output[1].abs().max().item<double>() == 0);
  const auto expected = clean.gradients(implementation);
  for (const auto& [role, gradient] : spoiled.gradients(implementation)) {
    CAPTURE(role);
    CHECK(relative_error(gradient, expected.at(role)) < 1e-12);
    if (role.rfind("parameter", 0) != 0) CHECK(gradient[1].abs().max().item<double>() == 0);
  }
}

}  // namespace attnbench::test
