// Values and gradients: against the definition, its finite differences, and the composite form.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "attention/conformance/compare.hpp"

namespace attnbench::conformance {
namespace {

constexpr double slope_limit = 1e-6;
constexpr const char* grouped = "2 key heads for 4";

void value_equals_reference(const Subject& subject, Judge& judge) {
  if (const auto trial = subject.prepare(judge, "length 37")) {
    compare_with_definition(judge, subject, *trial, draw(*trial, subject.seed),
                            all_rows(trial->problem));
  }
  if (const auto trial = subject.prepare(judge, "one token", {1, 1, 0, 1, 1})) {
    compare_with_definition(judge, subject, *trial, draw(*trial, subject.seed + 1),
                            all_rows(trial->problem));
  }
  if (const auto trial = subject.prepare(judge, grouped, grouped_sizes())) {
    compare_with_definition(judge, subject, *trial, draw(*trial, subject.seed + 2),
                            all_rows(trial->problem));
  }
}

/// Directional derivatives of sum(upstream * definition), by central differences of fourth order.
class Slope {
 public:
  Slope(const Subject& subject, const Trial& trial, const Inputs& inputs,
        const at::Tensor& upstream)
      : subject_(subject),
        trial_(trial),
        inputs_(definition_inputs(trial, inputs)),
        rows_(all_rows(trial.problem)),
        upstream_(numbers(upstream)) {}

  /// In steps of `h` along `direction` of a role or, where the name starts with "parameter ", a
  /// parameter.
  double along(const std::string& name, const std::vector<double>& direction, double h) {
    const std::string prefix = "parameter ";
    reference::Array& array = name.rfind(prefix, 0) == 0
                                  ? inputs_.parameters.at(name.substr(prefix.size()))
                                  : inputs_.roles.at(name);
    const std::vector<double> saved = array.values;
    const auto at = [&](double step) {
      for (std::size_t i = 0; i < saved.size(); ++i) {
        array.values[i] = saved[i] + step * direction[i];
      }
      return value();
    };
    const double slope = (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
    array.values = saved;
    return slope;
  }

 private:
  double value() const {
    const auto output = subject_.reference(trial_.options, trial_.problem, inputs_, rows_);
    double sum = 0;
    for (std::size_t i = 0; i < output.size(); ++i) sum += output[i] * upstream_[i];
    return sum;
  }

  const Subject& subject_;
  const Trial& trial_;
  reference::ReferenceInputs inputs_;
  std::vector<reference::RowIndex> rows_;
  std::vector<double> upstream_;
};

/// `where` the trial was made; two directions for each input and parameter.
void compare_slopes(const Subject& subject, Judge& judge, const Trial& trial) {
  const Inputs inputs = draw(trial, subject.seed + 3);
  const Problem& problem = trial.problem;
  const at::Tensor upstream =
      normal({problem.batch, problem.heads, problem.length, problem.value_dim}, subject.seed + 4);
  const Differentiated got = differentiate(trial, inputs, upstream);
  Slope slope(subject, trial, inputs, upstream);
  std::uint64_t seed = subject.seed + 100;
  for (const auto& [name, gradient] : got.gradients) {
    const std::vector<double> ours = numbers(gradient);
    double size = 0;
    for (const double each : ours) size += each * each;
    for (int i = 0; i < 2; ++i) {
      const std::vector<double> direction = numbers(normal(gradient.sizes(), ++seed));
      double along = 0;
      for (std::size_t j = 0; j < ours.size(); ++j) along += ours[j] * direction[j];
      double error = std::numeric_limits<double>::infinity();
      double slope_of_definition = 0;
      // A difference across a kink (of a relu) is not a slope: shorter steps cross fewer of them,
      // and a wrong gradient is wrong at every step.
      for (const double step : {1e-4, 1e-5, 1e-6}) {
        const double want = slope.along(name, direction, step);
        slope_of_definition = want;
        // A direction may happen to be flat: the gradient's own length is the scale, too.
        const double scale = std::max({std::abs(want), std::sqrt(size), 1e-3});
        error = std::min(error, std::abs(along - want) / scale);
        if (error <= slope_limit) break;
      }
      const std::string where = trial.where + ", gradient of " + name;
      const std::string side = not_finite_side(ours, {slope_of_definition});
      if (side.empty()) {
        judge.compare(where, error, slope_limit);
      } else {
        judge.fail(where + ": " + side);
      }
    }
  }
}

void gradient_equals_differences(const Subject& subject, Judge& judge) {
  if (!subject.differentiable()) {
    return judge.leave_out("", subject.implementation.name + " has no gradient");
  }
  if (subject.dtype != Dtype::float64) {
    return judge.leave_out("",
                           "finite differences need float64; equals_composite holds this dtype");
  }
  if (const auto trial = subject.prepare(judge, "length 37", {}, {}, true)) {
    compare_slopes(subject, judge, *trial);
  }
  if (const auto trial = subject.prepare(judge, grouped, grouped_sizes(), {}, true)) {
    compare_slopes(subject, judge, *trial);
  }
}

void equals_composite(const Subject& subject, Judge& judge) {
  const bool itself = &subject.implementation == &subject.entry.implementations.front();
  if (itself && subject.dtype == Dtype::float64) {
    return judge.leave_out("", "this is the composite form in double");
  }
  if (const auto trial = subject.prepare(judge, "length 37", {}, {}, true)) {
    compare_with_composite(judge, subject, *trial, draw(*trial, subject.seed + 6));
  }
  if (const auto trial = subject.prepare(judge, grouped, grouped_sizes(), {}, true)) {
    compare_with_composite(judge, subject, *trial, draw(*trial, subject.seed + 29));
  }
  OptionValues defaults;
  for (const auto& [name, value] : subject.chunks())
    defaults[name] = subject.option(name)->fallback;
  TrialSizes longer;
  longer.batch = 1;
  longer.length = 133;
  longer.key_length = 70;
  if (const auto trial = subject.prepare(judge, "length 133", longer, defaults, true)) {
    compare_with_composite(judge, subject, *trial, draw(*trial, subject.seed + 7));
  }
}

}  // namespace

std::vector<PropertyCheck> value_checks() {
  return {
      {{"value_equals_reference",
        "the output is that of the definition, in double and plain loops"},
       value_equals_reference},
      {{"gradient_equals_finite_differences",
        "the gradient of each input and parameter is the slope of the definition in double"},
       gradient_equals_differences},
      {{"equals_composite", "values and gradients are those of the composite form in double"},
       equals_composite},
  };
}

}  // namespace attnbench::conformance
