#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>

#include "core/tolerance.hpp"
#include "tasks/check.hpp"
#include "tasks/output_checks.hpp"

namespace attnbench::tasks {
namespace {

/// The composite form in double is the standard for others only if its error is at most this share
/// of their tolerance. Not less: a central difference resolves little of a small gradient.
constexpr double standard_share = 0.1;

/// The memory limit of the composite form in double.
constexpr double standard_bytes_limit = 2.0 * (1 << 30);

using Gradients = std::map<std::string, at::Tensor>;

/// A random function of sampled rows: sum over rows of weights . output row.
struct RowFunction {
  Rows rows;
  std::vector<double> weights;  ///< in the order of rows, rounded to the dtype
  at::Tensor upstream;          ///< the weights as a gradient of the output, in double
};

RowFunction row_function(const MixCase& mix, std::int64_t count) {
  const Problem problem = mix.problem();
  RowFunction function{mix.rows(problem, count, mix.seed + 1), {}, {}};
  const std::int64_t found = static_cast<std::int64_t>(function.rows.size());
  const at::Tensor some =
      seeded_normal({found, problem.value_dim}, mix.seed + 2, 1, scalar_type(problem.dtype));
  function.upstream =
      at::zeros({problem.batch, problem.heads, problem.length, problem.value_dim}, at::kDouble);
  for (std::int64_t i = 0; i < found; ++i) {
    const auto& [b, h, t] = function.rows[static_cast<std::size_t>(i)];
    function.upstream[b][h][t].copy_(some[i]);
  }
  function.weights = rows_of(function.upstream, function.rows);
  return function;
}

/// Copies of inputs that require gradients.
using Leaves = Inputs;

Leaves leaves_of(const Inputs& inputs, at::ScalarType type) {
  Leaves leaves;
  leaves.key_mask = inputs.key_mask;
  for (const auto& [role, tensor] : inputs.tensors) {
    leaves.tensors[role] = tensor.detach().clone().to(type).requires_grad_(true);
  }
  return leaves;
}

/// Their gradients by the implementation's own backward pass, in double.
Gradients gradients_of(const Implementation& implementation, Mechanism& mechanism,
                       const Leaves& leaves, const RowFunction& function) {
  const at::AutoGradMode with_grad(true);
  const at::Tensor output = implementation.mix(mechanism, leaves, nullptr).output;
  output.backward(function.upstream.to(output.options().requires_grad(false)));
  Gradients gradients;
  for (const auto& [role, leaf] : leaves.tensors) {
    gradients[role] = leaf.grad().defined() ? leaf.grad().cpu().to(at::kDouble)
                                            : at::zeros(leaf.sizes(), at::kDouble);
  }
  return gradients;
}

/// The same by the composite form in double, on the CPU.
Gradients exact_gradients(const MixCase& mix, const RowFunction& function) {
  Problem problem = mix.mechanism.problem;
  problem.dtype = Dtype::float64;
  problem.device = "cpu";
  const auto mechanism = mix.entry.make(mix.mechanism.options, problem);
  {
    const at::NoGradGuard no_grad;
    const auto parameters = mix.mechanism.named_parameters();
    for (auto& item : mechanism->named_parameters()) item.value().copy_(parameters[item.key()]);
    const auto buffers = mix.mechanism.named_buffers();
    for (auto& item : mechanism->named_buffers()) item.value().copy_(buffers[item.key()]);
  }
  Inputs inputs;
  if (mix.inputs.key_mask.defined()) inputs.key_mask = mix.inputs.key_mask.cpu();
  for (const auto& [role, tensor] : mix.inputs.tensors) inputs.tensors[role] = tensor.cpu();
  return gradients_of(mix.entry.implementations.front(), *mechanism, leaves_of(inputs, at::kDouble),
                      function);
}

/// A form other than the checked one that supports the problem. Null where there is none, or where
/// the composite form in double, the standard for both, would not fit.
const Implementation* another_form(const MixCase& mix) {
  Problem wide = mix.problem();
  wide.dtype = Dtype::float64;
  const Cost cost = mix.entry.implementations.front().cost(mix.mechanism.options, wide);
  if (cost.minimal_bytes + cost.workspace_bytes >= standard_bytes_limit) return nullptr;
  for (const Implementation& form : mix.entry.implementations) {
    if (form.name != mix.implementation.name && form.differentiable &&
        form.supports(mix.mechanism.options, mix.problem())) {
      return &form;
    }
  }
  return nullptr;
}

/// The points of a finite difference, in steps from the centre, with their weights.
struct FiniteDifference {
  double step;
  std::vector<std::pair<double, double>> places;
};

/// The step keeps both the truncation error, for logits of a hundred, and the rounding error below
/// 1e-6. A gradient in double has the tolerance 1e-10, which needs a difference of fourth order.
FiniteDifference difference_for(Dtype dtype) {
  if (dtype != Dtype::float64) return {1e-5, {{1, 0.5}, {-1, -0.5}}};
  return {1e-4, {{1, 2.0 / 3}, {-1, -2.0 / 3}, {2, -1.0 / 12}, {-2, 1.0 / 12}}};
}

/// A second opinion where the first one disagrees: among a hundred thousand elements of relu
/// features one or two lie within 1e-5 of the kink, where a difference is not a derivative; within
/// 1e-7 rarely.
FiniteDifference narrow_difference() { return {1e-7, {{1, 0.5}, {-1, -0.5}}}; }

using Directions = std::map<std::string, at::Tensor>;

/// The derivative of the function, by the definition, along `directions` of roles.
double central_difference(const MixCase& mix, const reference::ReferenceInputs& centre,
                          const Directions& directions, const RowFunction& function,
                          const FiniteDifference& by) {
  reference::ReferenceInputs inputs = centre;
  std::map<std::string, std::vector<double>> towards;
  for (const auto& [role, direction] : directions) towards[role] = to_array(direction).values;
  // Of each element first: what does not depend on a role is then exactly 0.
  std::vector<double> differences(function.weights.size(), 0);
  for (const auto& [place, weight] : by.places) {
    for (const auto& [role, direction] : towards) {
      const std::vector<double>& from = centre.roles.at(role).values;
      std::vector<double>& values = inputs.roles.at(role).values;
      for (std::size_t i = 0; i < from.size(); ++i) {
        values[i] = from[i] + place * by.step * direction[i];
      }
    }
    const std::vector<double> found = reference_rows(mix.reference, mix.mechanism.options,
                                                     mix.mechanism.problem, inputs, function.rows);
    for (std::size_t i = 0; i < found.size(); ++i) differences[i] += weight * found[i];
  }
  return std::inner_product(differences.begin(), differences.end(), function.weights.begin(), 0.0) /
         by.step;
}

/// One role's derivative along a direction, by the definition.
struct DirectionalDerivative {
  at::Tensor direction;
  double difference;
};
using Derivatives = std::map<std::string, DirectionalDerivative>;

Directions random_directions(const MixCase& mix, const Gradients& like) {
  Directions directions;
  std::uint64_t seed = mix.seed + 3;
  for (const auto& [role, gradient] : like) {
    directions[role] = seeded_normal(gradient.sizes(), seed++, 1, at::kDouble);
  }
  return directions;
}

Derivatives derivatives_of(const MixCase& mix, const Gradients& like, const RowFunction& function,
                           const FiniteDifference& by) {
  const reference::ReferenceInputs inputs = mix.exact_inputs(mix.problem());
  Derivatives derivatives;
  for (const auto& [role, direction] : random_directions(mix, like)) {
    derivatives[role] = {direction,
                         central_difference(mix, inputs, {{role, direction}}, function, by)};
  }
  return derivatives;
}

/// The error along one direction of all roles, in which each gradient has the size of the least: a
/// wrong one is as visible as in the root mean square over roles, and the definition is asked twice
/// in place of twice for each. Nothing where a gradient is zero: a small one that is missing would
/// be lost beside the others.
std::optional<double> error_together(const MixCase& mix, const Gradients& gradients,
                                     const RowFunction& function, const FiniteDifference& by) {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [role, gradient] : gradients) {
    least = std::min(least, gradient.norm().item<double>());
  }
  if (!(least > 0)) return std::nullopt;
  Directions directions = random_directions(mix, gradients);
  double along = 0;
  for (const auto& [role, gradient] : gradients) {
    at::Tensor& direction = directions.at(role);
    direction.mul_(least / gradient.norm().item<double>());
    along += (gradient * direction).sum().item<double>();
  }
  const double difference =
      central_difference(mix, mix.exact_inputs(mix.problem()), directions, function, by);
  const double scale = least * std::sqrt(static_cast<double>(gradients.size()));
  return std::abs(along - difference) / std::max(scale, std::abs(difference));
}

using Errors = std::map<std::string, double>;

Errors errors_along(const Gradients& gradients, const Derivatives& derivatives) {
  Errors errors;
  for (const auto& [role, gradient] : gradients) {
    const auto& [direction, difference] = derivatives.at(role);
    const double along = (gradient * direction).sum().item<double>();
    const double scale = std::max(gradient.norm().item<double>(), std::abs(difference));
    errors[role] = scale > 0 ? std::abs(along - difference) / scale : std::abs(along - difference);
  }
  return errors;
}

Errors errors_from(const Gradients& gradients, const Gradients& exact) {
  Errors errors;
  for (const auto& [role, gradient] : gradients) {
    const at::Tensor& want = exact.at(role);
    const double scale = want.norm().item<double>();
    const double off = (gradient - want).norm().item<double>();
    errors[role] = scale > 0 ? off / scale : off;
  }
  return errors;
}

double root_mean_square(const Errors& errors) {
  double squares = 0;
  for (const auto& [role, error] : errors) squares += error * error;
  return errors.empty() ? 0 : std::sqrt(squares / static_cast<double>(errors.size()));
}

/// An error and its tolerance.
struct ErrorAndBar {
  double error;
  double bar;
  double derived = 0;  ///< what the bar would be if it had no limit
};

/// Replaces errors by those of whole gradients and compares each role with the error of another
/// form; returns the worst role. Nothing where there is no other form, or where the composite form
/// in double does not agree with the definition.
std::optional<ErrorAndBar> compared_with_other_form(const MixCase& mix, const RowFunction& function,
                                                    const Gradients& gradients,
                                                    const Derivatives& derivatives,
                                                    CheckSection& section, Errors& errors) {
  const Implementation* const other = another_form(mix);
  if (other == nullptr) return std::nullopt;
  const Dtype dtype = mix.problem().dtype;
  const Tolerance bars = tolerance(dtype);
  const Gradients exact = exact_gradients(mix, function);
  double exact_error = root_mean_square(errors_along(exact, derivatives));
  if (!(exact_error <= standard_share * bars.gradient)) {
    // Differences of small steps are off by the rounding of the function where terms cancel.
    const auto wide = derivatives_of(mix, gradients, function, difference_for(Dtype::float64));
    exact_error = std::min(exact_error, root_mean_square(errors_along(exact, wide)));
  }
  section.exact_error = if_finite(exact_error);
  if (!(exact_error <= standard_share * bars.gradient)) return std::nullopt;
  errors = errors_from(gradients, exact);
  const Errors naive = errors_from(
      gradients_of(*other, mix.mechanism, leaves_of(mix.inputs, scalar_type(dtype)), function),
      exact);
  ErrorAndBar worst{0, bars.gradient};
  for (const auto& [role, error] : errors) {
    const Allowed may = allowed(bars.gradient, bars, naive.at(role));
    if (error / may.bar <= worst.error / worst.bar) continue;
    worst = {error, may.bar, may.derived};
    section.naive_error = if_finite(naive.at(role));
  }
  return worst;
}

}  // namespace

CheckSection check_gradient(const MixCase& mix, std::int64_t count) {
  const Dtype dtype = mix.problem().dtype;
  const RowFunction function = row_function(mix, count);
  const Leaves leaves = leaves_of(mix.inputs, scalar_type(dtype));
  const Snapshot before(read_by(mix.mechanism, leaves));
  const Gradients gradients = gradients_of(mix.implementation, mix.mechanism, leaves, function);
  if (const std::string name = before.changed(); !name.empty()) {
    return found_wrong("its backward pass changed the input \"" + name + "\" in place");
  }
  for (const auto& [role, gradient] : gradients) {
    const std::string bad = not_finite_in(gradient);
    if (!bad.empty()) return found_wrong("its gradient of \"" + role + "\" holds " + bad);
  }
  CheckSection section;
  section.rows = function.rows.size();
  const double plain = tolerance(dtype).gradient;
  const auto together = error_together(mix, gradients, function, difference_for(dtype));
  if (together && *together <= plain) {
    section.tolerance = plain;
    section.error = *together;
    return section;
  }
  Derivatives derivatives = derivatives_of(mix, gradients, function, difference_for(dtype));
  Errors errors = errors_along(gradients, derivatives);
  ErrorAndBar result{root_mean_square(errors), plain};
  if (result.error > result.bar && std::isfinite(result.error) && dtype != Dtype::float64) {
    Derivatives narrow = derivatives_of(mix, gradients, function, narrow_difference());
    Errors again = errors_along(gradients, narrow);
    if (root_mean_square(again) < result.error) {
      derivatives = std::move(narrow);
      errors = std::move(again);
      result.error = root_mean_square(errors);
    }
  }
  if (result.error > result.bar && std::isfinite(result.error)) {
    const auto other =
        compared_with_other_form(mix, function, gradients, derivatives, section, errors);
    result = other.value_or(result);
  }
  const auto [error, bar, derived] = result;
  section.tolerance = if_finite(bar);
  auto& roles = section.roles.emplace();
  for (const auto& [role, off] : errors) {
    if (std::isfinite(off)) roles[role] = off;
  }
  section.error = if_finite(error);
  if (error > bar && error <= derived) {
    section.mark_unchecked("its gradient is off by more than any tolerance in " +
                           std::string(to_string(dtype)) + ", and so is that of another form");
  } else if (!std::isfinite(error)) {
    section.mark_wrong(
        "its reference returned numbers that are not finite, its gradient is finite");
  } else if (!(error <= bar)) {
    section.mark_wrong(
        "its gradient differs from that of the reference by more than the tolerance");
  }
  return section;
}

}  // namespace attnbench::tasks
