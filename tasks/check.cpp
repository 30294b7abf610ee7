#include "tasks/check.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <stdexcept>

#include "attention/tolerance.hpp"

namespace attnbench::tasks {
namespace {

constexpr std::int64_t least_rows = 32;
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

/// An output that is no [B, H, T, Dv] has no rows to look at.
class WrongShape : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

void require_shape(const MixCase& mix, const Implementation& implementation,
                   const at::Tensor& output) {
  const Problem problem = mix.problem();
  const std::vector<std::int64_t> expected{problem.batch, problem.heads, problem.length,
                                           problem.value_dim};
  if (output.defined() && output.sizes() == expected) return;
  std::ostringstream text;
  text << mix.entry.name << "/" << implementation.name << " returned ";
  if (output.defined()) {
    text << "an output of " << output.sizes();
  } else {
    text << "no output";
  }
  text << ", expected " << at::IntArrayRef(expected);
  throw WrongShape(text.str());
}

std::vector<double> mixed_rows(const MixCase& mix, const Implementation& implementation,
                               const Rows& rows) {
  const at::NoGradGuard no_grad;
  const at::Tensor output = implementation.mix(mix.mechanism, mix.inputs, nullptr).output;
  require_shape(mix, implementation, output);
  return rows_of(output, rows);
}

/// The composite's rows at the same size and dtype; none where it does not fit or cannot, nor for
/// the composite itself, which is no judge of its own.
std::vector<double> naive_rows(const MixCase& mix, const Rows& rows) {
  const Implementation& composite = mix.entry.implementations.front();
  const Options& options = mix.mechanism.options;
  if (mix.implementation.name == composite.name) return {};
  if (!composite.supports(options, mix.problem())) return {};
  const Cost cost = composite.cost(options, mix.problem());
  if (cost.minimal_bytes + cost.workspace_bytes >= naive_bytes_limit) return {};
  try {
    return mixed_rows(mix, composite, rows);
  } catch (const std::bad_alloc&) {
    return {};
  } catch (const UnsupportedError&) {
    return {};
  }
}

/// The definition's rows with every input moved by up to one rounding of the dtype.
double rounding_error(const MixCase& mix, const Problem& problem,
                      const reference::ReferenceInputs& exact, const Rows& rows,
                      const std::vector<double>& want) {
  const double roundoff = tolerance(problem.dtype).unit_roundoff;
  reference::ReferenceInputs moved = exact;
  std::mt19937_64 random(mix.seed);
  for (auto& [role, array] : moved.roles) {
    for (double& value : array.values) {
      const double share = static_cast<double>(random() >> 11) * 0x1p-52 - 1;
      value *= 1 + roundoff * share;
    }
  }
  return relative_rms(reference_rows(mix.reference, mix.mechanism.options, problem, moved, rows),
                      want);
}

/// Not a number and infinity have no place in JSON: such an error is left out.
void put(Json& section, const char* key, double value) {
  if (std::isfinite(value)) section[key] = value;
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
  const double rounding = rounding_error(mix, problem, exact, rows, want);
  const double naive_error = naive.empty() ? rounding : relative_rms(naive, want);
  const double bar = allowed(bars.value, bars, naive_error);

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

Json check_values(const MixCase& mix) {
  const Problem problem = mix.problem();
  const Rows rows = sampled_rows(problem, least_rows, mix.seed);
  return check_rows(mix, problem, rows, mixed_rows(mix, mix.implementation, rows),
                    naive_rows(mix, rows));
}

Json check_mix(const MixCase& mix, bool with_gradient) {
  const double start = seconds_now();
  Json section;
  try {
    section = check_values(mix);
  } catch (const WrongShape& wrong) {
    return {{"verdict", "wrong"}, {"reason", wrong.what()}, {"rows", 0}};
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
