// The RG-LRU by its definition: De et al. 2024 (Griffin), section 2.4.
//   h_t = a_t h_{t-1} + sqrt(1 - a_t^2) i_t v_t,  log a_t = -8 softplus(lambda) r_t,
// and with first_input = plain, as recurrentgemma has it, h_t = i_t v_t at the first real token.
// With directions = both, the output is h_t plus that of the same recurrence from the last token to
// the first, with a lambda and biases of its own.
#include <cmath>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

/// The parameters of one direction.
struct Direction {
  Direction(const ReferenceInputs& inputs, const std::string& prefix)
      : lambda(inputs.parameters.at(prefix + "lambda").values),
        recurrence_bias(inputs.parameters.at(prefix + "recurrence_bias").values),
        input_bias(inputs.parameters.at(prefix + "input_bias").values) {}
  const std::vector<double>& lambda;
  const std::vector<double>& recurrence_bias;
  const std::vector<double>& input_bias;
};

/// h of channel `d` at `at`, from token `first` in steps of 1 or -1.
double hidden(const ReferenceInputs& inputs, const Direction& own, const RowIndex& at,
              std::int64_t d, std::int64_t first, std::int64_t step, bool plain,
              std::int64_t key_length) {
  const Array& value = inputs.roles.at("value");
  const Array& of_recurrence = inputs.roles.at("recurrence_gate");
  const Array& of_input = inputs.roles.at("input_gate");
  const auto channel = static_cast<std::size_t>(at.h * value.shape[3] + d);
  double h = 0;
  bool begun = false;
  for (std::int64_t t = first; t != at.t + step; t += step) {
    if (!inputs.visible(at.b, t, key_length)) continue;
    const double r = sigmoid(of_recurrence.row(at.b, at.h, t)[d] + own.recurrence_bias[channel]);
    const double i = sigmoid(of_input.row(at.b, at.h, t)[d] + own.input_bias[channel]);
    const double log_a = -8 * softplus(own.lambda[channel]) * r;
    const double gain = plain && !begun ? 1 : std::sqrt(-std::expm1(2 * log_a));
    h = std::exp(log_a) * h + gain * i * value.row(at.b, at.h, t)[d];
    begun = true;
  }
  return h;
}

std::vector<double> rg_lru_rows(const Options& options, const Problem& problem,
                                const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const std::int64_t width = inputs.roles.at("value").shape[3];
  const std::int64_t keys = problem.key_length;
  const bool plain = options.text("first_input") == "plain";
  const bool both = options.text("directions") == "both";
  const Direction ahead(inputs, "");
  const Direction back(inputs, both ? "backward_" : "");
  std::vector<double> output;
  for (const RowIndex& at : rows) {
    for (std::int64_t d = 0; d < width; ++d) {
      double sum = hidden(inputs, ahead, at, d, 0, 1, plain, keys);
      if (both) sum += hidden(inputs, back, at, d, keys - 1, -1, plain, keys);
      output.push_back(sum);
    }
  }
  return output;
}

}  // namespace

Reference rg_lru() { return rg_lru_rows; }

}  // namespace attnbench::reference
