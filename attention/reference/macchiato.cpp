// Latte-Macchiato by its definition: Latte v2, section 4.1, eq. 15-17 and 19.
//   y_t = p_{t,0} sum_s softmax_s(scale q_t . k_s) v_s + sum_l p_{t,l} sum_s softmax_s(k_{s,l}) v_s
// with p_t the softmax of L + 1 logits, the first sum over the window of t. What comes before the
// logits is not a part of it: it is in the inputs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

using Vector = std::vector<double>;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// exp(x - max x) over their sum; all 0 where there is nothing to weigh.
Vector softmax(const Vector& logits) {
  double top = -infinity;
  for (const double x : logits) top = std::max(top, x);
  Vector weights(logits.size(), 0.0);
  if (std::isinf(top)) return weights;
  double total = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) total += weights[i] = std::exp(logits[i] - top);
  for (double& weight : weights) weight /= total;
  return weights;
}

/// x with its pairs (2i, 2i + 1) rotated by position * base^(-2i / w), w the even part of its
/// width.
Vector turned(const double* x, std::int64_t width, double position, double base) {
  Vector y(x, x + width);
  const std::int64_t pairs = width / 2;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const double angle =
        position * std::pow(base, -static_cast<double>(i) / static_cast<double>(pairs));
    const auto a = static_cast<std::size_t>(2 * i);
    y[a] = x[2 * i] * std::cos(angle) - x[2 * i + 1] * std::sin(angle);
    y[a + 1] = x[2 * i] * std::sin(angle) + x[2 * i + 1] * std::cos(angle);
  }
  return y;
}

class Row {
 public:
  Row(const Options& options, const Problem& problem, const ReferenceInputs& inputs, RowIndex at)
      : options_(options),
        problem_(problem),
        inputs_(inputs),
        at_(at),
        key_head_(at.h / (problem.heads / problem.kv_heads)) {}

  Vector output() const {
    const Array& q = inputs_.roles.at("query_logits");
    Vector logits(q.row(at_.b, at_.h, at_.t), q.row(at_.b, at_.h, at_.t) + q.shape[3]);
    for (double& logit : logits) logit *= options_.number("logit_scale");
    const Vector p = softmax(logits);
    // For every key its weight in the output.
    Vector weights(static_cast<std::size_t>(problem_.key_length), 0.0);
    add(p[0], local_logits(), weights);
    for (std::size_t l = 1; l < p.size(); ++l) {
      add(p[l], latent_logits(static_cast<std::int64_t>(l) - 1), weights);
    }
    return average(weights);
  }

 private:
  static void add(double p, const Vector& logits, Vector& weights) {
    const Vector part = softmax(logits);
    for (std::size_t s = 0; s < weights.size(); ++s) weights[s] += p * part[s];
  }

  bool seen(std::int64_t s) const {
    return inputs_.visible(at_.b, s, problem_.key_length) &&
           (problem_.pattern != Pattern::causal || s <= at_.t);
  }

  Vector latent_logits(std::int64_t latent) const {
    const Array& k = inputs_.roles.at("key_logits");
    Vector logits;
    for (std::int64_t s = 0; s < problem_.key_length; ++s) {
      logits.push_back(seen(s) ? options_.number("logit_scale") * k.row(at_.b, key_head_, s)[latent]
                               : -infinity);
    }
    return logits;
  }

  Vector local_logits() const {
    const Array& q = inputs_.roles.at("local_query");
    const Array& k = inputs_.roles.at("local_key");
    const Window window = options_.window("window");
    const std::int64_t width = q.shape[3];
    double scale = options_.number("scale");
    if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(width));
    Vector logits;
    for (std::int64_t s = 0; s < problem_.key_length; ++s) {
      if (!seen(s) || s < at_.t - window.left || s > at_.t + window.right) {
        logits.push_back(-infinity);
        continue;
      }
      const Vector query = placed(q.row(at_.b, at_.h, at_.t), width, at_.t, "rotary", 1);
      const Vector key = placed(k.row(at_.b, key_head_, s), width, s, "rotary", 1);
      double dot = 0;
      for (std::size_t d = 0; d < query.size(); ++d) dot += query[d] * key[d];
      logits.push_back(scale * dot);
    }
    return logits;
  }

  Vector average(const Vector& weights) const {
    const Array& v = inputs_.roles.at("value");
    Vector y(static_cast<std::size_t>(v.shape[3]), 0.0);
    for (std::int64_t s = 0; s < problem_.key_length; ++s) {
      if (weights[static_cast<std::size_t>(s)] == 0) continue;
      const Vector value = placed(v.row(at_.b, key_head_, s), v.shape[3], s, "vapor", 1);
      for (std::size_t d = 0; d < y.size(); ++d) {
        y[d] += weights[static_cast<std::size_t>(s)] * value[d];
      }
    }
    return placed(y.data(), v.shape[3], at_.t, "vapor", -1);
  }

  /// x rotated by its token's position, if the option says so.
  Vector placed(const double* x, std::int64_t width, std::int64_t token, const char* option,
                int direction) const {
    if (!options_.boolean(option)) return {x, x + width};
    return turned(x, width, static_cast<double>(direction * token), options_.number("rotary_base"));
  }

  const Options& options_;
  const Problem& problem_;
  const ReferenceInputs& inputs_;
  const RowIndex at_;
  const std::int64_t key_head_;  ///< that its head shares
};

std::vector<double> macchiato_rows(const Options& options, const Problem& problem,
                                   const ReferenceInputs& inputs,
                                   const std::vector<RowIndex>& rows) {
  Vector output;
  for (const RowIndex& at : rows) {
    const Vector row = Row(options, problem, inputs, at).output();
    output.insert(output.end(), row.begin(), row.end());
  }
  return output;
}

}  // namespace

Reference macchiato() { return macchiato_rows; }

}  // namespace attnbench::reference
