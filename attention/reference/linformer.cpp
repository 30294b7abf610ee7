// Linformer by its definition: Wang et al. 2020, equation 7.
//   K'_l = sum_s E_{l,s} k_s,  V'_l = sum_s F_{l,s} v_s over the real s,
//   y_t = sum_l softmax_l(scale q_t.K'_l) V'_l.
#include <algorithm>
#include <cmath>
#include <map>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

/// sum_s matrix_{l,s} x_s for every l, [L, w]; a matrix [G, L, S'] has one for each key head.
std::vector<double> projected(const Array& matrix, const Array& x, std::int64_t b, std::int64_t g,
                              const ReferenceInputs& inputs) {
  const std::int64_t latents = matrix.shape[matrix.shape.size() - 2];
  const std::int64_t positions = matrix.shape.back();
  const std::int64_t width = x.shape[3];
  const double* rows =
      matrix.values.data() + (matrix.shape.size() == 3 ? g * latents * positions : 0);
  std::vector<double> out(static_cast<std::size_t>(latents * width), 0.0);
  for (std::int64_t s = 0; s < x.shape[2]; ++s) {
    if (!inputs.visible(b, s, x.shape[2])) continue;
    const double* token = x.row(b, g, s);
    for (std::int64_t l = 0; l < latents; ++l) {
      const double weight = rows[l * positions + s];
      for (std::int64_t d = 0; d < width; ++d) {
        out[static_cast<std::size_t>(l * width + d)] += weight * token[d];
      }
    }
  }
  return out;
}

std::vector<double> row_of(const double* q, std::int64_t dims, const std::vector<double>& keys,
                           const std::vector<double>& values, double scale) {
  const auto latents = static_cast<std::int64_t>(keys.size()) / dims;
  std::vector<double> weights;
  for (std::int64_t l = 0; l < latents; ++l) {
    double sum = 0;
    for (std::int64_t d = 0; d < dims; ++d) {
      sum += q[d] * keys[static_cast<std::size_t>(l * dims + d)];
    }
    weights.push_back(scale * sum);
  }
  const double greatest = *std::max_element(weights.begin(), weights.end());
  double total = 0;
  for (double& weight : weights) total += weight = std::exp(weight - greatest);
  const std::size_t width = values.size() / weights.size();
  std::vector<double> output(width, 0.0);
  for (std::size_t l = 0; l < weights.size(); ++l) {
    for (std::size_t d = 0; d < width; ++d) {
      output[d] += weights[l] / total * values[l * width + d];
    }
  }
  return output;
}

std::vector<double> linformer_rows(const Options& options, const Problem& problem,
                                   const ReferenceInputs& inputs,
                                   const std::vector<RowIndex>& rows) {
  const Array& q = inputs.roles.at("query");
  const Array& keys_by = inputs.parameters.at("E");
  const bool shared = options.boolean("share_kv");
  const Array& values_by = shared ? keys_by : inputs.parameters.at("F");
  double scale = options.number("scale");
  if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(problem.head_dim));
  struct Slots {
    std::vector<double> keys, values;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, Slots> known;  // the same for all rows of a head
  std::vector<double> output;
  for (const RowIndex& at : rows) {
    const std::int64_t g = at.h / (problem.heads / problem.kv_heads);
    Slots& slots = known[{at.b, g}];
    if (slots.keys.empty()) {
      slots.keys = projected(keys_by, inputs.roles.at("key"), at.b, g, inputs);
      slots.values = projected(values_by, inputs.roles.at("value"), at.b, g, inputs);
    }
    const auto row =
        row_of(q.row(at.b, at.h, at.t), problem.head_dim, slots.keys, slots.values, scale);
    output.insert(output.end(), row.begin(), row.end());
  }
  return output;
}

}  // namespace

Reference linformer() { return linformer_rows; }

}  // namespace attnbench::reference
