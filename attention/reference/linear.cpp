// Linear attention by its definition, pair by pair: Katharopoulos et al. 2020, "Transformers are
// RNNs", eq. 4-6.
//   y_t = sum_s w_ts v_s / (sum_s w_ts + epsilon), s visible, where w_ts is, by the feature,
//   elu1        sum_i (elu(q_i) + 1) (elu(k_i) + 1)
//   exp         sum_i exp(q_i) exp(k_i)           Latte v2, eq. 5
//   relu        sum_i max(q_i, 0) max(k_i, 0)
//   polynomial  (q.k)^2
//   taylor2     1 + z + z^2 / 2, z = q.k / sqrt(D)   Arora et al. 2024 (Based), section 4.1
//   hedgehog    softmax(W q).softmax(W' k) + softmax(-W q).softmax(-W' k)   Zhang et al. 2024
// The weights of exp and hedgehog are taken by their logarithms, without an epsilon.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

/// log sum_i exp(x_i).
double log_sum(const std::vector<double>& x) {
  const double top = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double each : x) sum += std::exp(each - top);
  return top + std::log(sum);
}

/// log softmax(W x), and of -W x after it; `map` is W, `width` rows of as many numbers.
std::vector<double> hedgehog(const double* x, const double* map, std::int64_t width) {
  std::vector<double> plus, minus;
  for (std::int64_t i = 0; i < width; ++i) {
    double sum = 0;
    for (std::int64_t d = 0; d < width; ++d) sum += map[i * width + d] * x[d];
    plus.push_back(sum);
    minus.push_back(-sum);
  }
  const double above = log_sum(plus), below = log_sum(minus);
  for (double& each : plus) each -= above;
  for (const double each : minus) plus.push_back(each - below);
  return plus;
}

/// The weights of one feature.
struct Kernel {
  std::string feature;
  const ReferenceInputs& inputs;
  std::int64_t width;

  bool exponential() const { return feature == "exp" || feature == "hedgehog"; }

  /// One token's phi(x), log phi(x) where the feature is exponential, or x itself where weights
  /// follow from q.k.
  std::vector<double> prepared(const char* role, const char* map, const RowIndex& at) const {
    const double* x = inputs.roles.at(role).row(at.b, at.h, at.t);
    if (feature == "hedgehog") {
      return hedgehog(x, inputs.parameters.at(map).values.data() + at.h * width * width, width);
    }
    std::vector<double> phi(x, x + width);
    for (double& each : phi) {
      if (feature == "relu") each = std::max(each, 0.0);
      if (feature == "elu1") each = each > 0 ? each + 1 : std::exp(each);
    }
    return phi;
  }

  /// Its logarithm where the feature is exponential.
  double weight(const std::vector<double>& q, const std::vector<double>& k) const {
    if (exponential()) {
      std::vector<double> terms;
      for (std::size_t i = 0; i < q.size(); ++i) terms.push_back(q[i] + k[i]);
      return log_sum(terms);
    }
    const double dot = std::inner_product(q.begin(), q.end(), k.begin(), 0.0);
    if (feature == "polynomial") return dot * dot;
    if (feature != "taylor2") return dot;
    const double z = dot / std::sqrt(static_cast<double>(width));
    return 1 + z + z * z / 2;
  }
};

/// What a query gives over the keys, of which undefined ones are padded: y, all 0 before.
void add_up(const Kernel& kernel, double total, const std::vector<double>& query,
            const std::vector<std::optional<std::vector<double>>>& keys, std::size_t seen,
            const RowIndex& at, double* y) {
  const Array& v = kernel.inputs.roles.at("value");
  std::vector<double> weights;
  double top = -std::numeric_limits<double>::infinity();
  for (std::size_t s = 0; s < seen; ++s) {
    weights.push_back(keys[s] ? kernel.weight(query, *keys[s]) : 0);
    if (keys[s]) top = std::max(top, weights.back());
  }
  for (std::size_t s = 0; s < seen; ++s) {
    if (!keys[s]) continue;
    const double weight = kernel.exponential() ? std::exp(weights[s] - top) : weights[s];
    total += weight;
    const double* value = v.row(at.b, at.h, static_cast<std::int64_t>(s));
    for (std::int64_t d = 0; d < v.shape[3]; ++d) y[d] += weight * value[d];
  }
  for (std::int64_t d = 0; d < v.shape[3]; ++d) y[d] = total > 0 ? y[d] / total : 0;
}

std::vector<double> linear_rows(const Options& options, const Problem& problem,
                                const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Kernel kernel{options.text("feature"), inputs, inputs.roles.at("query").shape[3]};
  const auto width = static_cast<std::size_t>(inputs.roles.at("value").shape[3]);
  std::vector<double> output(rows.size() * width, 0.0);
  std::vector<std::size_t> order(rows.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    return std::pair(rows[i].b, rows[i].h) < std::pair(rows[j].b, rows[j].h);
  });
  // The keys of a head are prepared once for all of its rows.
  std::vector<std::optional<std::vector<double>>> keys;
  const RowIndex* before = nullptr;
  for (const std::size_t i : order) {
    const RowIndex& at = rows[i];
    if (before == nullptr || before->b != at.b || before->h != at.h) {
      keys.assign(static_cast<std::size_t>(problem.key_length), std::nullopt);
      for (std::int64_t s = 0; s < problem.key_length; ++s) {
        if (!inputs.visible(at.b, s, problem.key_length)) continue;
        keys[static_cast<std::size_t>(s)] = kernel.prepared("key", "key_map", {at.b, at.h, s});
      }
    }
    before = &at;
    const std::int64_t seen = problem.pattern == Pattern::causal ? at.t + 1 : problem.key_length;
    add_up(kernel, options.number("epsilon"), kernel.prepared("query", "query_map", at), keys,
           static_cast<std::size_t>(seen), at, output.data() + i * width);
  }
  return output;
}

}  // namespace

Reference linear() { return linear_rows; }

}  // namespace attnbench::reference
