#include "tasks/check.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <stdexcept>

#include "attention/conformance/tolerance.hpp"
#include "tasks/aftermath.hpp"
#include "tasks/bits.hpp"
#include "tasks/rows_apart.hpp"

namespace attnbench::tasks {
namespace {

constexpr std::int64_t least_rows = 32;
constexpr std::int64_t fewest_timed_rows = 8;
constexpr std::int64_t most_timed_rows = 4096;
constexpr double naive_bytes_limit = 2.0 * (1 << 30);

double seconds_now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return values.empty() ? 0 : std::sqrt(sum / static_cast<double>(values.size()));
}

double greatest_difference(const std::vector<double>& got, const std::vector<double>& want) {
  double greatest = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    greatest = std::max(greatest, std::abs(got[i] - want[i]));
  }
  const double size = root_mean_square(want);
  return size > 0 ? greatest / size : greatest;
}

/// An output that is not of the form that was asked for has no rows to look at.
class WrongForm : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void require_form(const MixCase& mix, const Implementation& implementation,
                  const at::Tensor& output) {
  const Problem problem = mix.problem();
  const std::vector<std::int64_t> shape{problem.batch, problem.heads, problem.length,
                                        problem.value_dim};
  const std::string departure =
      departure_from(output, shape, scalar_type(problem.dtype), at::Device(problem.device));
  if (departure.empty()) return;
  throw WrongForm(mix.entry.name + "/" + implementation.name + " returned " + departure);
}

/// The whole output of the composite form at the same size and dtype, on inputs of its own, so that
/// what it does to them is nobody else's matter. Undefined where it does not fit or cannot, and for
/// the composite itself, which is no judge of its own. No other form is asked: one that crashes
/// must cost its own cell alone.
at::Tensor composite_output(const MixCase& mix) {
  const Implementation& composite = mix.entry.implementations.front();
  if (mix.implementation.name == composite.name) return {};
  if (!composite.supports(mix.mechanism.options, mix.problem())) return {};
  const Cost cost = composite.cost(mix.mechanism.options, mix.problem());
  if (cost.minimal_bytes + cost.workspace_bytes >= naive_bytes_limit) return {};
  const at::NoGradGuard no_grad;
  try {
    Inputs own = mix.inputs;
    for (auto& [role, tensor] : own.tensors) tensor = tensor.detach().clone();
    const at::Tensor output = composite.mix(mix.mechanism, own, nullptr).output;
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

/// None where there is no such output.
std::vector<double> rows_if_any(const at::Tensor& output, const Rows& rows) {
  return output.defined() ? rows_of(output, rows) : std::vector<double>{};
}

/// The definition's rows with every input moved by up to one rounding of the dtype.
std::vector<double> moved_rows(const MixCase& mix, const Problem& problem,
                               const reference::ReferenceInputs& exact, const Rows& rows) {
  const double roundoff = tolerance(problem.dtype).unit_roundoff;
  reference::ReferenceInputs moved = exact;
  std::mt19937_64 random(mix.seed);
  for (auto& [role, array] : moved.roles) {
    for (double& value : array.values) {
      const double share = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
      value *= 1 + roundoff * share;
    }
  }
  return reference_rows(mix.reference, mix.mechanism.options, problem, moved, rows);
}

/// Not a number and infinity have no place in JSON: such an error is left out.
void put(Json& section, const char* key, double value) {
  if (std::isfinite(value)) section[key] = value;
}

/// What is known of some rows: where they are and what they must be.
struct Known {
  const MixCase& mix;
  const Problem& problem;
  const reference::ReferenceInputs& exact;
  Rows rows;
  std::vector<double> want;
};

Known known_rows(const MixCase& mix, const Problem& problem,
                 const reference::ReferenceInputs& exact, const Rows& rows) {
  return {mix, problem, exact, rows,
          reference_rows(mix.reference, mix.mechanism.options, problem, exact, rows)};
}

/// A single row may be this many bars away from the definition: the worst of a million rows is
/// several times as far off as most, and a row that is wrong a hundred times.
constexpr double row_bars = 8;
constexpr std::size_t most_suspects = 8;

/// Error of row number `index` over its size; a small row is no nearer than `usual` ones.
double row_error(const Known& known, const std::vector<double>& got, std::size_t index,
                 double usual) {
  const auto width = static_cast<std::size_t>(known.problem.value_dim);
  double squares = 0;
  double size = 0;
  for (std::size_t d = index * width; d < (index + 1) * width; ++d) {
    squares += (got[d] - known.want[d]) * (got[d] - known.want[d]);
    size += known.want[d] * known.want[d];
  }
  const auto count = static_cast<double>(width);
  const double scale = std::max(std::sqrt(size / count), usual);
  return std::sqrt(squares / count) / (scale > 0 ? scale : 1);
}

using Naive = std::function<std::vector<double>(const Rows&)>;

/// The first row that is wrong for itself, as a sentence; empty where none is. Their mean may hide
/// it: at the beginning of a causal sequence rows are much larger than later. Rows that depend so
/// much on the last digit of the inputs that a naive run is off as well are excused.
std::string wrong_row(const Known& known, const std::vector<double>& got, double usual, double bar,
                      const Naive& naive) {
  const Tolerance bars = tolerance(known.problem.dtype);
  for (std::size_t i = 0; i < known.rows.size(); ++i) {
    const double error = row_error(known, got, i, usual);
    if (error <= row_bars * bar) continue;
    const Known one = known_rows(known.mix, known.problem, known.exact, {known.rows[i]});
    double excused =
        row_error(one, moved_rows(one.mix, one.problem, one.exact, one.rows), 0, usual);
    if (const std::vector<double> other = naive(one.rows); !other.empty()) {
      excused = std::max(excused, row_error(one, other, 0, usual));
    }
    if (error <= row_bars * allowed(bar, bars, excused)) continue;
    const auto& [b, h, t] = known.rows[i];
    return "its row of batch " + std::to_string(b) + ", head " + std::to_string(h) + ", token " +
           std::to_string(t) + " differs from the reference by more than the tolerance";
  }
  return "";
}

/// check_rows, and each row for itself, on inputs that are converted already; the naive run is
/// asked for, and the rounding error computed, only where the plain bar does not do.
Json compared(const Known& known, const std::vector<double>& got, const Naive& naive) {
  const Tolerance bars = tolerance(known.problem.dtype);
  const double error = relative_rms(got, known.want);
  if (!(error <= bars.value)) {
    return check_rows(known.mix, known.problem, known.rows, got, naive(known.rows));
  }
  Json section = {{"verdict", "ok"}, {"rows", known.rows.size()}, {"tolerance", bars.value}};
  put(section, "error", error);
  const std::string wrong = wrong_row(known, got, root_mean_square(known.want), bars.value, naive);
  if (!wrong.empty()) section.update({{"verdict", "wrong"}, {"reason", wrong}});
  return section;
}

}  // namespace

Problem MixCase::problem() const {
  Problem own = mechanism.problem;
  const at::ScalarType given = inputs.tensors.begin()->second.scalar_type();
  for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::bfloat16, Dtype::float16}) {
    if (scalar_type(dtype) == given) own.dtype = dtype;
  }
  return own;
}

Json check_rows(const MixCase& mix, const Problem& problem, const Rows& rows,
                const std::vector<double>& got, const std::vector<double>& naive) {
  const reference::ReferenceInputs exact = to_reference(mix.mechanism, mix.inputs);
  const std::vector<double> want =
      reference_rows(mix.reference, mix.mechanism.options, problem, exact, rows);
  const Tolerance bars = tolerance(problem.dtype);
  const double error = relative_rms(got, want);
  const double rounding = relative_rms(moved_rows(mix, problem, exact, rows), want);
  const double naive_error = naive.empty() ? rounding : relative_rms(naive, want);
  // A naive run that is off by half knows nothing (of denormal numbers that are flushed to zero,
  // for one) and excuses nothing.
  const double excused = naive_error > 0.5 ? rounding : naive_error;
  const double bar = allowed(bars.value, bars, excused);

  Json section = {{"rows", rows.size()}, {"tolerance", bar}, {"reference", "definition in double"}};
  put(section, "error", error);
  put(section, "max_error", greatest_difference(got, want));
  put(section, "rounding_error", rounding);
  if (!naive.empty()) put(section, "naive_error", naive_error);
  section["verdict"] = error <= bar ? "ok" : "wrong";
  if (!(error <= bar)) {
    section["reason"] = std::isfinite(error)
                            ? "its values differ from the reference by more than the tolerance"
                            : "it returned numbers that are not finite";
  }
  return section;
}

Json found_wrong(const std::string& reason) {
  return {{"verdict", "wrong"}, {"reason", reason}, {"rows", 0}};
}

Json worse_of(Json a, Json b) {
  const auto use_of = [](const Json& section) {
    return section.value("error", 0.0) / section.value("tolerance", 1.0);
  };
  const bool a_wrong = a["verdict"] != "ok";
  const bool b_wrong = b["verdict"] != "ok";
  if (a_wrong != b_wrong) return a_wrong ? a : b;
  return use_of(a) >= use_of(b) ? a : b;
}

Json check_values(const MixCase& mix) {
  const at::NoGradGuard no_grad;
  const Problem problem = mix.problem();
  const Snapshot before(read_by(mix.mechanism, mix.inputs));
  Aftermath aftermath;
  const at::Tensor output = mix.implementation.mix(mix.mechanism, mix.inputs, nullptr).output;
  require_form(mix, mix.implementation, output);
  if (const std::string seen = aftermath.after(output); !seen.empty()) return found_wrong(seen);
  if (const std::string name = before.changed(); !name.empty()) {
    return found_wrong("it changed its input \"" + name + "\" in place");
  }
  if (const std::int64_t bad = count_not_finite(output); bad > 0) {
    return found_wrong("it returned numbers that are not finite: " + std::to_string(bad) + " of " +
                       std::to_string(output.numel()));
  }
  const Rows rows = sampled_rows(problem, least_rows, mix.seed);
  const at::Tensor composite = composite_output(mix);
  Json section =
      check_rows(mix, problem, rows, rows_of(output, rows), rows_if_any(composite, rows));
  if (!aftermath.said().empty()) section["after_call"] = aftermath.said();
  if (section["verdict"] != "ok" || !composite.defined()) return section;
  // Rows that were not sampled: those that differ most from the composite form's.
  const double bar = section["tolerance"];
  const Rows suspects = rows_apart(output, composite, 2 * row_bars * bar, most_suspects);
  if (suspects.empty()) return section;
  const reference::ReferenceInputs exact = to_reference(mix.mechanism, mix.inputs);
  const std::string wrong = wrong_row(known_rows(mix, problem, exact, suspects),
                                      rows_of(output, suspects), usual_size(composite), bar,
                                      [&](const Rows& some) { return rows_of(composite, some); });
  if (!wrong.empty()) section.update({{"verdict", "wrong"}, {"reason", wrong}});
  return section;
}

Json check_output(const MixCase& mix, const Problem& problem, const at::Tensor& output,
                  const Rows& first, double seconds) {
  const at::NoGradGuard no_grad;
  if (const std::int64_t bad = count_not_finite(output); bad > 0) {
    return found_wrong("it returned numbers that are not finite: " + std::to_string(bad) + " of " +
                       std::to_string(output.numel()));
  }
  const reference::ReferenceInputs exact = to_reference(mix.mechanism, mix.inputs);
  const auto look_at = [&](const Rows& rows) {
    return compared(known_rows(mix, problem, exact, rows), rows_of(output, rows),
                    [&](const Rows& some) { return rows_if_any(composite_output(mix), some); });
  };
  Rows rows = sampled_rows(problem, fewest_timed_rows, mix.seed);
  rows.insert(rows.end(), first.begin(), first.end());
  const double start = seconds_now();
  const Json section = look_at(rows);
  const double once = (seconds_now() - start) / static_cast<double>(rows.size());
  const auto affordable = static_cast<std::int64_t>(
      std::min(static_cast<double>(most_timed_rows), seconds / std::max(once, 1e-9)));
  if (section["verdict"] != "ok" || affordable < 2 * fewest_timed_rows) return section;
  return look_at(sampled_rows(problem, affordable, mix.seed + 1));
}

Json check_taken_rows(const MixCase& mix, const Problem& problem, const Rows& rows,
                      const std::vector<double>& got) {
  const reference::ReferenceInputs exact = to_reference(mix.mechanism, mix.inputs);
  return compared(known_rows(mix, problem, exact, rows), got,
                  [](const Rows&) { return std::vector<double>{}; });
}

Json check_mix(const MixCase& mix, bool with_gradient) {
  const double start = seconds_now();
  Json section;
  try {
    section = check_values(mix);
  } catch (const WrongForm& wrong) {
    return found_wrong(wrong.what());
  }
  if (!with_gradient) return section;
  // The values took the reference twice over their rows; the gradient takes it twice for each role.
  const double once = (seconds_now() - start) / 2;
  const auto roles = static_cast<double>(mix.inputs.tensors.size());
  const double affordable = 2.0 / std::max(1e-9, 2 * roles * once) * least_rows;
  const auto rows = static_cast<std::int64_t>(std::clamp<double>(affordable, 4, least_rows));
  try {
    section["gradient"] = check_gradient(mix, rows);
  } catch (const std::bad_alloc&) {
    // The pass itself may fit where the check, which holds gradients in double, does not.
    section["gradient"] = {{"skipped", "its check did not fit in memory"}};
    return section;
  }
  const Json& gradient = section["gradient"];
  if (section["verdict"] == "ok" && gradient["verdict"] != "ok") {
    section["verdict"] = "wrong";
    section["reason"] = gradient["reason"];
  }
  return section;
}

}  // namespace attnbench::tasks
