#include "tasks/check.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <new>
#include <random>
#include <stdexcept>

#include "core/tolerance.hpp"
#include "tasks/output_checks.hpp"

namespace attnbench::tasks {
namespace {

/// How many sampled rows the definition is asked for: as many as it computes in `seconds`.
struct RowBudget {
  std::int64_t fewest;
  std::int64_t most;
  double seconds;
};
/// Of the first round, which compares the rest with the composite form.
constexpr RowBudget of_values{8, 32, 0.1};
constexpr RowBudget of_gradient{4, 32, 0.2};
constexpr std::int64_t fewest_timed_rows = 4;
constexpr std::int64_t max_timed_rows = 4096;
constexpr double naive_bytes_limit = 2.0 * (1 << 30);

constexpr const char* definition = "definition in double";

double seconds_now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

std::string two_digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2g", value);
  return text.data();
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

double max_difference(const std::vector<double>& got, const std::vector<double>& want) {
  double greatest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    greatest = std::max(greatest, std::abs(got[i] - want[i]));
  }
  const double size = root_mean_square(want);
  return size > 0 ? greatest / size : greatest;
}

/// An output of another form than expected has no rows to compare.
class WrongForm : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void require_form(const MixCase& mix, const Implementation& implementation,
                  const at::Tensor& output) {
  const Problem problem = mix.problem();
  const std::vector<std::int64_t> shape{problem.batch, problem.heads, problem.length - mix.past,
                                        problem.value_dim};
  const std::string departure =
      form_mismatch(output, shape, scalar_type(problem.dtype), at::Device(problem.device));
  if (departure.empty()) return;
  throw WrongForm(mix.entry.name + "/" + implementation.name + " returned " + departure);
}

/// The whole output of the composite form at the same size and dtype, on copies of the inputs,
/// which it may change. Undefined where it does not fit or is unsupported, and for the composite
/// form itself. No other form is used: one that crashes must cost its own cell alone.
at::Tensor composite_output(const MixCase& mix) {
  const Implementation& composite = mix.entry.implementations.front();
  if (mix.implementation.name == composite.name) return {};
  if (!composite.supports(mix.mechanism.options, mix.problem())) return {};
  const Cost cost = mix.cost_of(composite);
  if (cost.minimal_bytes + cost.workspace_bytes >= naive_bytes_limit) return {};
  const at::NoGradGuard no_grad;
  try {
    Inputs own = mix.inputs;
    for (auto& [role, tensor] : own.tensors) tensor = tensor.detach().clone();
    const at::Tensor output = mix.output_of(composite, own);
    require_form(mix, composite, output);
    return output;
  } catch (const std::bad_alloc&) {
    return {};
  } catch (const c10::OutOfMemoryError&) {
    return {};
  } catch (const UnsupportedError&) {
    return {};
  }
}

/// Empty where the output is undefined.
std::vector<double> rows_or_none(const at::Tensor& output, const Rows& rows) {
  return output.defined() ? rows_of(output, rows) : std::vector<double>{};
}

/// The definition's rows with every input changed by up to one rounding of the dtype.
std::vector<double> rows_of_rounded(const MixCase& mix, const Problem& problem,
                                    const reference::ReferenceInputs& exact, const Rows& rows) {
  const double roundoff = tolerance(problem.dtype).unit_roundoff;
  reference::ReferenceInputs rounded = exact;
  std::mt19937_64 random(mix.seed);
  for (auto& [role, array] : rounded.roles) {
    for (double& value : array.values) {
      const double share = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
      value *= 1 + roundoff * share;
    }
  }
  return mix.defined_rows(problem, rounded, rows);
}

/// Rows and their values by the definition.
struct ExpectedRows {
  const MixCase& mix;
  const Problem& problem;
  const reference::ReferenceInputs& exact;
  Rows rows;
  std::vector<double> want;
};

ExpectedRows expected_rows(const MixCase& mix, const Problem& problem,
                           const reference::ReferenceInputs& exact, const Rows& rows) {
  return {mix, problem, exact, rows, mix.defined_rows(problem, exact, rows)};
}

/// The tolerance of a single row, in tolerances of the mean: the worst of a million rows has
/// several times the usual error, a wrong row a hundred times.
constexpr double row_factor = 8;
constexpr std::size_t max_suspects = 8;

/// The error of row `index` over its size or, where greater, `typical_size`.
double row_error(const ExpectedRows& expected, const std::vector<double>& got, std::size_t index,
                 double typical_size) {
  const auto width = static_cast<std::size_t>(expected.problem.value_dim);
  double squares = 0;
  double size = 0;
  for (std::size_t d = index * width; d < (index + 1) * width; ++d) {
    squares += (got[d] - expected.want[d]) * (got[d] - expected.want[d]);
    size += expected.want[d] * expected.want[d];
  }
  const auto count = static_cast<double>(width);
  const double scale = std::max(std::sqrt(size / count), typical_size);
  return std::sqrt(squares / count) / (scale > 0 ? scale : 1);
}

/// Roundings of its values by which an output may be off where they cancel.
constexpr double max_roundings = 64;

/// The error relative to `want` that this is; infinite where the values are not known.
double cancelled(const reference::ReferenceInputs& exact, const Tolerance& bars,
                 const std::vector<double>& want) {
  const auto value = exact.roles.find("value");
  if (value == exact.roles.end()) return 0;
  return max_roundings * bars.unit_roundoff * root_mean_square(value->second.values) /
         std::max(root_mean_square(want), bars.smallest);
}

using Naive = std::function<std::vector<double>(const Rows&)>;

/// A sentence on the first row that is wrong by itself; empty if there is none. The mean may hide
/// it: the first rows of a causal sequence are much larger than later ones. Rows are excused where
/// they depend so much on the last digit of the inputs that a naive run is as far off.
std::string wrong_row(const ExpectedRows& expected, const std::vector<double>& got,
                      double typical_size, double bar, const Naive& naive) {
  const Tolerance bars = tolerance(expected.problem.dtype);
  for (std::size_t i = 0; i < expected.rows.size(); ++i) {
    const double error = row_error(expected, got, i, typical_size);
    if (error <= row_factor * bar) continue;
    const ExpectedRows one =
        expected_rows(expected.mix, expected.problem, expected.exact, {expected.rows[i]});
    double excused =
        row_error(one, rows_of_rounded(one.mix, one.problem, one.exact, one.rows), 0, typical_size);
    if (const std::vector<double> other = naive(one.rows); !other.empty()) {
      excused = std::max(excused, row_error(one, other, 0, typical_size));
    }
    if (error <= row_factor * allowed(bar, bars, excused).derived) continue;
    const auto& [b, h, t] = expected.rows[i];
    return "its row of batch " + std::to_string(b) + ", head " + std::to_string(h) + ", token " +
           std::to_string(t) + " differs from the reference by more than the tolerance";
  }
  return "";
}

/// A sentence on numbers that are not finite, of which one side holds some.
std::string not_finite_side(const std::vector<double>& got, const std::vector<double>& want) {
  const auto is_bad = [](double number) { return !std::isfinite(number); };
  const auto bad = std::count_if(want.begin(), want.end(), is_bad);
  if (std::any_of(got.begin(), got.end(), is_bad) || bad == 0) {
    return bad == 0 ? "it returned numbers that are not finite"
                    : "it returned numbers that are not finite, and so does its reference";
  }
  return "its reference returned numbers that are not finite (" + std::to_string(bad) + " of " +
         std::to_string(want.size()) + "), it did not";
}

/// check_rows, and each row by itself, on converted inputs. Uses the naive run and the rounding
/// error only where the plain tolerance is exceeded.
CheckSection compared(const ExpectedRows& expected, const std::vector<double>& got,
                      const Naive& naive) {
  const Tolerance bars = tolerance(expected.problem.dtype);
  const double error = relative_rms(got, expected.want, bars.smallest);
  if (!(error <= bars.value)) {
    return check_rows(expected.mix, expected.problem, expected.rows, got, naive(expected.rows));
  }
  CheckSection section;
  section.rows = expected.rows.size();
  section.tolerance = bars.value;
  section.reference = definition;
  section.error = if_finite(error);
  section.max_error = if_finite(max_difference(got, expected.want));
  const std::string wrong = wrong_row(
      expected, got, std::max(root_mean_square(expected.want), bars.smallest), bars.value, naive);
  if (!wrong.empty()) section.mark_wrong(wrong);
  return section;
}

/// Compares rows of the output with the definition: `first` and as many sampled ones as the budget
/// allows.
CheckSection check_within(const MixCase& mix, const Problem& problem, const at::Tensor& output,
                          const Rows& first, const RowBudget& budget, const Naive& naive) {
  const reference::ReferenceInputs exact = mix.exact_inputs(problem);
  const auto check = [&](const Rows& rows) {
    return compared(expected_rows(mix, problem, exact, rows), rows_of(output, rows), naive);
  };
  Rows rows = mix.rows(problem, budget.fewest, mix.seed);
  rows.insert(rows.end(), first.begin(), first.end());
  const double start = seconds_now();
  const CheckSection section = check(rows);
  const double once = (seconds_now() - start) / static_cast<double>(rows.size());
  const auto affordable = static_cast<std::int64_t>(
      std::min(static_cast<double>(budget.most), budget.seconds / std::max(once, 1e-9)));
  if (!section.ok() || affordable < 2 * budget.fewest) return section;
  return check(mix.rows(problem, affordable, mix.seed + 1));
}

}  // namespace

CheckSection check_rows(const MixCase& mix, const Problem& problem, const Rows& rows,
                        const std::vector<double>& got, const std::vector<double>& naive) {
  const reference::ReferenceInputs exact = mix.exact_inputs(problem);
  const std::vector<double> want = mix.defined_rows(problem, exact, rows);
  const Tolerance bars = tolerance(problem.dtype);
  const double floor = bars.smallest;
  const double error = relative_rms(got, want, floor);
  const double rounding = relative_rms(rows_of_rounded(mix, problem, exact, rows), want, floor);
  const double naive_error = naive.empty() ? rounding : relative_rms(naive, want);
  // A naive run that is off by half excuses nothing: it may flush denormal numbers to zero.
  const double excused = naive_error > 0.5 ? rounding : naive_error;
  const Allowed may = allowed(bars.value, bars, excused);

  CheckSection section;
  section.rows = rows.size();
  section.tolerance = if_finite(may.bar);
  section.reference = definition;
  section.error = if_finite(error);
  section.max_error = if_finite(max_difference(got, want));
  section.rounding_error = if_finite(rounding);
  if (!naive.empty()) section.naive_error = if_finite(naive_error);
  if (may.right(error)) return section;
  const std::string at_most =
      ", more than any tolerance in " + std::string(to_string(problem.dtype));
  if (!std::isfinite(error)) {
    section.mark_wrong(not_finite_side(got, want));
  } else if (const double left = cancelled(exact, bars, want); rounding > bars.most) {
    if (error <= left) {
      section.tolerance = left;
      return section;
    }
    section.mark_unchecked("the definition itself moves by " + two_digits(rounding) +
                           " with the last digit of its inputs" + at_most);
  } else if (may.unchecked(error)) {
    section.mark_unchecked("it is off by " + two_digits(error) + at_most +
                           ", and so is a naive run, by " + two_digits(excused));
  } else {
    section.mark_wrong("its values differ from the reference by more than the tolerance");
  }
  return section;
}

CheckSection check_values(const MixCase& mix) {
  const at::NoGradGuard no_grad;
  const Problem problem = mix.problem();
  const Snapshot before(read_by(mix.mechanism, mix.inputs));
  AfterCallCheck after_call;
  const at::Tensor output = mix.output_of(mix.implementation, mix.inputs);
  require_form(mix, mix.implementation, output);
  if (const std::string why = after_call.failure(output); !why.empty()) return found_wrong(why);
  if (const std::string name = before.changed(); !name.empty()) {
    return found_wrong("it changed its input \"" + name + "\" in place");
  }
  if (const std::string bad = not_finite_in(output); !bad.empty()) {
    return found_wrong("it returned " + bad);
  }
  const at::Tensor composite = composite_output(mix);
  CheckSection section = check_within(mix, problem, output, {}, of_values, [&](const Rows& some) {
    return rows_or_none(composite, some);
  });
  section.after_call = after_call.note();
  const bool cancels = section.rounding_error.value_or(0) > tolerance(problem.dtype).most;
  if (!section.ok() || !composite.defined() || cancels) return section;
  // Unsampled rows: those that differ most from the composite form's.
  const double bar = section.tolerance.value();
  const Rows suspects = differing_rows(mix.with_real_rows(output), mix.with_real_rows(composite),
                                       2 * row_factor * bar, max_suspects);
  if (suspects.empty()) return section;
  const reference::ReferenceInputs exact = mix.exact_inputs(problem);
  const std::string wrong =
      wrong_row(expected_rows(mix, problem, exact, suspects), rows_of(output, suspects),
                root_mean_square_of(composite), bar,
                [&](const Rows& some) { return rows_of(composite, some); });
  if (!wrong.empty()) section.mark_wrong(wrong);
  return section;
}

CheckSection check_output(const MixCase& mix, const Problem& problem, const at::Tensor& output,
                          const Rows& first, double seconds) {
  const at::NoGradGuard no_grad;
  if (const std::string bad = not_finite_in(output); !bad.empty()) {
    return found_wrong("it returned " + bad);
  }
  return check_within(mix, problem, output, first, {fewest_timed_rows, max_timed_rows, seconds},
                      [&](const Rows& some) { return rows_or_none(composite_output(mix), some); });
}

CheckSection check_taken_rows(const MixCase& mix, const Problem& problem, const Rows& rows,
                              const std::vector<double>& got) {
  const reference::ReferenceInputs exact = mix.exact_inputs(problem);
  return compared(expected_rows(mix, problem, exact, rows), got,
                  [](const Rows&) { return std::vector<double>{}; });
}

CheckSection check_mix(const MixCase& mix, bool with_gradient) {
  const double start = seconds_now();
  CheckSection section;
  try {
    section = check_values(mix);
  } catch (const WrongForm& wrong) {
    return found_wrong(wrong.what());
  }
  if (!with_gradient) return section;
  // A row of a gradient needs the definition twice.
  const double of_row = (seconds_now() - start) / static_cast<double>(section.rows.value_or(1));
  const double affordable = of_gradient.seconds / std::max(1e-9, 2 * of_row);
  const auto rows = static_cast<std::int64_t>(std::clamp(
      affordable, static_cast<double>(of_gradient.fewest), static_cast<double>(of_gradient.most)));
  try {
    section.add_part("gradient", check_gradient(mix, rows), "");
  } catch (const std::bad_alloc&) {
    // The pass itself may fit where this check, with gradients in double, does not.
    CheckSection skipped = check_skipped("its check did not fit in memory");
    skipped.verdict.clear();
    section.add_part("gradient", std::move(skipped), "");
  }
  return section;
}

}  // namespace attnbench::tasks
