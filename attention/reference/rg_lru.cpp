// The RG-LRU by its definition: De et al. 2024 (Griffin), section 2.4.
//   h_t = a_t h_{t-1} + sqrt(1 - a_t^2) i_t v_t,  log a_t = -8 softplus(lambda) r_t,
// and with first_input = plain, as recurrentgemma has it, h_t = i_t v_t at the first real token.
#include <cmath>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

std::vector<double> rg_lru_rows(const Options& options, const Problem& problem,
                                const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& recurrence = inputs.roles.at("recurrence_gate");
  const Array& input = inputs.roles.at("input_gate");
  const Array& value = inputs.roles.at("value");
  const auto& lambda = inputs.parameters.at("lambda").values;
  const auto& recurrence_bias = inputs.parameters.at("recurrence_bias").values;
  const auto& input_bias = inputs.parameters.at("input_bias").values;
  const std::int64_t width = value.shape[3];
  const bool plain = options.text("first_input") == "plain";
  std::vector<double> output;
  for (const RowIndex& at : rows) {
    for (std::int64_t d = 0; d < width; ++d) {
      const auto channel = static_cast<std::size_t>(at.h * width + d);
      double h = 0;
      bool begun = false;
      for (std::int64_t t = 0; t <= at.t; ++t) {
        if (!inputs.visible(at.b, t, problem.key_length)) continue;
        const double r = sigmoid(recurrence.row(at.b, at.h, t)[d] + recurrence_bias[channel]);
        const double i = sigmoid(input.row(at.b, at.h, t)[d] + input_bias[channel]);
        const double log_a = -8 * softplus(lambda[channel]) * r;
        const double gain = plain && !begun ? 1 : std::sqrt(-std::expm1(2 * log_a));
        h = std::exp(log_a) * h + gain * i * value.row(at.b, at.h, t)[d];
        begun = true;
      }
      output.push_back(h);
    }
  }
  return output;
}

}  // namespace

Reference rg_lru() { return rg_lru_rows; }

}  // namespace attnbench::reference
