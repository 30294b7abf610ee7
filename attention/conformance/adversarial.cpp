// Adversarial inputs: exponents far outside what the dtype can hold. The answer must be finite and,
// which is more, right.
#include <cmath>
#include <functional>

#include "attention/conformance/compare.hpp"

namespace attnbench::conformance {
namespace {

struct Hardship {
  const char* name;
  /// [B, H, T, w] to the same shape.
  std::function<at::Tensor(const at::Tensor&)> apply;
};

/// [T, 1] in the tensor's dtype: `factor` of the token's number.
at::Tensor along_tokens(const at::Tensor& like, const std::function<double(std::int64_t)>& factor) {
  at::Tensor out = at::empty({like.size(2), 1}, at::kDouble);
  for (std::int64_t t = 0; t < like.size(2); ++t) out.data_ptr<double>()[t] = factor(t);
  return out.to(like.scalar_type());
}

std::vector<Hardship> hardships() {
  const auto jump = [](std::int64_t t) {
    constexpr double sizes[] = {1, 10, 1000};
    return sizes[t % 3];
  };
  return {
      {"scaled by 1, 10, 1000 in turn",
       [jump](const at::Tensor& x) { return x * along_tokens(x, jump); }},
      {"raised by 1, 10, 1000 in turn",
       [jump](const at::Tensor& x) { return x + along_tokens(x, jump); }},
      {"rising by 30 per token",
       [](const at::Tensor& x) {
         return x + along_tokens(x, [](std::int64_t t) { return 30.0 * static_cast<double>(t); });
       }},
      {"falling by 30 per token",
       [](const at::Tensor& x) {
         return x + along_tokens(x, [](std::int64_t t) { return -30.0 * static_cast<double>(t); });
       }},
      {"of standard deviation 15", [](const at::Tensor& x) { return x * 15; }},
  };
}

void compare_case(const Subject& subject, Judge& judge, Trial trial, const Inputs& inputs,
                  const std::string& where) {
  trial.where = where;
  // Rounding logits in the hundreds to 8 bits decides by chance among near ties: of the plain form
  // no more can be asked in these dtypes, and it is what the others are measured by.
  const bool itself = &subject.implementation == &subject.entry.implementations.front();
  if (itself && bytes_of(subject.dtype) == 2) {
    judge.require(where + ": the output is finite",
                  at::isfinite(mix(trial, inputs)).all().item<bool>());
  } else {
    compare_with_definition(judge, subject, trial, inputs, all_rows(trial.problem));
  }
  if (!subject.differentiable()) return;
  const Problem& problem = trial.problem;
  const at::Tensor upstream =
      normal({problem.batch, problem.heads, problem.length, problem.value_dim}, subject.seed + 20);
  const Differentiated got = differentiate(trial, inputs, upstream);
  for (const auto& [name, gradient] : got.gradients) {
    judge.require(where + ": the gradient of " + name + " is finite",
                  at::isfinite(gradient).all().item<bool>());
  }
  if (itself || subject.dtype != Dtype::float64) return;
  // Differences of near ties cancel: no more of their digits are asked for than of slopes. What
  // reaches a parameter is the sum of all tokens, of which here nothing but rounding may be left.
  constexpr double limit = 1e-6;
  const Trial exact = subject.composite_in_double(trial).value();
  const Differentiated want = differentiate(exact, inputs, upstream);
  for (const Role& role : trial.mechanism->roles()) {
    const auto gradient = want.gradients.find(role.name);
    if (gradient == want.gradients.end()) continue;
    judge.compare(where + ", gradient of " + role.name,
                  difference(got.gradients.at(role.name), gradient->second), limit);
  }
}

void adversarial(const Subject& subject, Judge& judge) {
  TrialSizes sizes;
  sizes.batch = 1;
  sizes.key_length = 37;
  const auto trial = subject.prepare(judge, "length 37", sizes, {}, true);
  if (!trial) return;
  const Inputs inputs = draw(*trial, subject.seed + 21);
  for (const Hardship& hardship : hardships()) {
    Inputs all = inputs;
    std::string names;
    for (const Role& role : trial->mechanism->roles()) {
      if (is_value(*trial, role)) continue;
      Inputs one = inputs;
      one.tensors[role.name] = hardship.apply(inputs[role.name]);
      all.tensors[role.name] = one.tensors[role.name];
      names += (names.empty() ? "" : " and ") + role.name;
      compare_case(subject, judge, *trial, one, role.name + " " + hardship.name);
    }
    compare_case(subject, judge, *trial, all, names + " " + hardship.name);
  }
}

}  // namespace

std::vector<PropertyCheck> adversarial_checks() {
  return {{{"adversarial",
            "inputs that jump by 1000, ramp by 30 per token or spread by 15 give the definition's "
            "output"},
           adversarial}};
}

}  // namespace attnbench::conformance
