// Long-short attention by its definition, query by query: Zhu et al. 2021, eq. 3-6,
//   y_t = softmax over the window's keys and the slots, scores divided by sqrt(D),
//   slots K_i = sum_s softmax_s(p_si) k_s over all real tokens or, causal, over those of a segment
//   that ends before the query's own; LN of each key and value of the window and of the slots.
#include <algorithm>
#include <cmath>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

/// (x - mean) / sqrt(variance + 1e-5), where the norm is asked for.
std::vector<double> layer_normalised(const Options& options, std::vector<double> x) {
  if (options.text("norm") == "none") return x;
  const auto count = static_cast<double>(x.size());
  double mean = 0, variance = 0;
  for (const double each : x) mean += each / count;
  for (const double each : x) variance += (each - mean) * (each - mean) / count;
  for (double& each : x) each = (each - mean) / std::sqrt(variance + 1e-5);
  return x;
}

std::vector<double> token_row(const Array& from, const RowIndex& at, std::int64_t s) {
  const double* begin = from.row(at.b, at.h, s);
  return {begin, begin + from.shape[3]};
}

/// What a query sees: pairs of a key and a value.
using SeenPairs = std::vector<std::pair<std::vector<double>, std::vector<double>>>;

/// Slot `i` of tokens [begin, end), if one of them is real.
void add_slot(const Options& options, const Problem& problem, const ReferenceInputs& inputs,
              const RowIndex& at, std::int64_t i, std::int64_t begin, std::int64_t end,
              SeenPairs& seen) {
  const Array& key = inputs.roles.at("key");
  const Array& value = inputs.roles.at("value");
  const Array& logits = inputs.roles.at("slots");
  double maximum = -HUGE_VAL;
  for (std::int64_t s = begin; s < end; ++s) {
    if (!inputs.visible(at.b, s, problem.key_length)) continue;
    maximum = std::max(maximum, logits.row(at.b, at.h, s)[i]);
  }
  if (std::isinf(maximum)) return;
  std::vector<double> k(static_cast<std::size_t>(key.shape[3]), 0.0);
  std::vector<double> v(static_cast<std::size_t>(value.shape[3]), 0.0);
  double total = 0;
  for (std::int64_t s = begin; s < end; ++s) {
    if (!inputs.visible(at.b, s, problem.key_length)) continue;
    const double weight = std::exp(logits.row(at.b, at.h, s)[i] - maximum);
    total += weight;
    for (std::size_t d = 0; d < k.size(); ++d) k[d] += weight * key.row(at.b, at.h, s)[d];
    for (std::size_t d = 0; d < v.size(); ++d) v[d] += weight * value.row(at.b, at.h, s)[d];
  }
  for (double& each : k) each /= total;
  for (double& each : v) each /= total;
  seen.emplace_back(layer_normalised(options, k), layer_normalised(options, v));
}

std::vector<double> longshort_rows(const Options& options, const Problem& problem,
                                   const ReferenceInputs& inputs,
                                   const std::vector<RowIndex>& rows) {
  const Array& value = inputs.roles.at("value");
  const Window window = options.window("window");
  const std::int64_t segment = options.integer("segment");
  std::vector<double> output;
  for (const RowIndex& at : rows) {
    SeenPairs seen;
    const std::int64_t first = std::max<std::int64_t>(0, at.t - window.left);
    const std::int64_t last = std::min(problem.key_length - 1, at.t + window.right);
    for (std::int64_t s = first; s <= last; ++s) {
      if (!inputs.visible(at.b, s, problem.key_length)) continue;
      seen.emplace_back(layer_normalised(options, token_row(inputs.roles.at("key"), at, s)),
                        layer_normalised(options, token_row(value, at, s)));
    }
    for (std::int64_t i = 0; i < options.integer("projected_length"); ++i) {
      if (problem.pattern == Pattern::bidirectional) {
        add_slot(options, problem, inputs, at, i, 0, problem.key_length, seen);
      }
      for (std::int64_t n = 0; problem.pattern == Pattern::causal && n < at.t / segment; ++n) {
        add_slot(options, problem, inputs, at, i, n * segment, (n + 1) * segment, seen);
      }
    }
    std::vector<double> y(static_cast<std::size_t>(value.shape[3]), 0.0);
    std::vector<double> scores;
    double maximum = -HUGE_VAL, total = 0;
    for (const auto& pair : seen) {
      double score = 0;
      for (std::size_t d = 0; d < pair.first.size(); ++d) {
        score += inputs.roles.at("query").row(at.b, at.h, at.t)[d] * pair.first[d];
      }
      scores.push_back(score / std::sqrt(static_cast<double>(problem.head_dim)));
      maximum = std::max(maximum, scores.back());
    }
    for (double& score : scores) total += score = std::exp(score - maximum);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      for (std::size_t d = 0; d < y.size(); ++d) y[d] += scores[i] / total * seen[i].second[d];
    }
    output.insert(output.end(), y.begin(), y.end());
  }
  return output;
}

}  // namespace

Reference longshort() { return longshort_rows; }

}  // namespace attnbench::reference
