// LAVO by its definition: "Linear Attention Via Orthogonal memory" (2023), eq. 3-4, sections 3.2 to
// 3.4. A memory of tokens x_s is u_j = b_j . mean(x); a query reads
//   sum_j softmax_j(scale (b_j.q) u_j) u_j b_j.
// Plain: x_s are the context's tokens up to t. Dissected: they are the local outputs F_s of the
// windows that are over, s < w floor(t / w), and the output is (F_t + what is read) / 2.
// Undissected, the last row of Table 9: that output, with the tokens x_s of the plain form.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

using Row = std::vector<double>;

class Lavo {
 public:
  Lavo(const Options& options, const Problem& problem, const ReferenceInputs& inputs)
      : problem_(problem),
        inputs_(inputs),
        window_(options.window("window")),
        plain_(options.text("form") == "plain" || problem.pattern == Pattern::cross),
        raw_(plain_ || options.text("form") == "undissected"),
        local_alone_(!raw_ && options.text("empty_global") == "local"),
        bases_(inputs.parameters.at("bases")),
        width_(bases_.shape[2]) {
    const double scale = options.number("scale");
    scale_ = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(width_));
  }

  Row row(const RowIndex& at) {
    const std::int64_t seen = remembered(at.t);
    const auto [mean, count] = mean_of(at, seen);
    const Row global = read(at, mean);
    if (plain_) return global;
    const Row& local = local_rows(at, at.t + 1)[static_cast<std::size_t>(at.t)];
    const bool alone = problem_.pattern == Pattern::causal && local_alone_ && count == 0;
    Row output;
    for (std::size_t d = 0; d < local.size(); ++d) {
      output.push_back(alone ? local[d] : (local[d] + global[d]) / 2);
    }
    return output;
  }

 private:
  /// Tokens [0, n) are in the memory that query t reads.
  std::int64_t remembered(std::int64_t t) const {
    if (problem_.pattern != Pattern::causal) return problem_.key_length;
    const std::int64_t w = window_.left + 1;
    return raw_ ? t + 1 : t / w * w;
  }

  std::pair<Row, std::int64_t> mean_of(const RowIndex& at, std::int64_t tokens) {
    Row sum(static_cast<std::size_t>(width_), 0.0);
    std::int64_t count = 0;
    const std::vector<Row>* local = raw_ ? nullptr : &local_rows(at, tokens);
    for (std::int64_t s = 0; s < tokens; ++s) {
      if (!inputs_.visible(at.b, s, problem_.key_length)) continue;
      ++count;
      const double* x = raw_ ? inputs_.roles.at("context").row(at.b, at.h, s)
                             : (*local)[static_cast<std::size_t>(s)].data();
      for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += x[d];
    }
    if (count > 0) {
      for (double& each : sum) each /= static_cast<double>(count);
    }
    return {sum, count};
  }

  /// The local outputs of tokens [0, n) at least; those of one head are computed once.
  const std::vector<Row>& local_rows(const RowIndex& at, std::int64_t n) {
    auto& rows = local_[{at.b, at.h}];
    while (static_cast<std::int64_t>(rows.size()) < n) {
      rows.push_back(local_row({at.b, at.h, static_cast<std::int64_t>(rows.size())}));
    }
    return rows;
  }

  Row local_row(const RowIndex& at) const {
    const Array& v = inputs_.roles.at("value");
    const std::int64_t first = std::max<std::int64_t>(0, at.t - window_.left);
    const std::int64_t last = std::min(problem_.key_length - 1, at.t + window_.right);
    double greatest = -std::numeric_limits<double>::infinity();
    Row scores;
    for (std::int64_t s = first; s <= last; ++s) {
      scores.push_back(score(at, s));
      if (inputs_.visible(at.b, s, problem_.key_length)) {
        greatest = std::max(greatest, scores.back());
      }
    }
    Row sum(static_cast<std::size_t>(width_), 0.0);
    double total = 0;
    for (std::int64_t s = first; s <= last; ++s) {
      if (!inputs_.visible(at.b, s, problem_.key_length)) continue;
      const double weight = std::exp(scores[static_cast<std::size_t>(s - first)] - greatest);
      total += weight;
      for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += weight * v.row(at.b, at.h, s)[d];
    }
    for (double& each : sum) each = total > 0 ? each / total : 0;
    return sum;
  }

  double score(const RowIndex& at, std::int64_t s) const {
    const double* q = inputs_.roles.at("query").row(at.b, at.h, at.t);
    const double* k = inputs_.roles.at("key").row(at.b, at.h, s);
    double product = 0;
    for (std::int64_t d = 0; d < width_; ++d) product += q[d] * k[d];
    double bias = 0;
    const auto found = inputs_.parameters.find("relative_bias");
    if (found != inputs_.parameters.end()) {
      const std::int64_t w = std::max(window_.left, window_.right) + 1;
      bias = found->second.values[static_cast<std::size_t>(s - at.t + w - 1)];
    }
    return scale_ * product + bias;
  }

  Row read(const RowIndex& at, const Row& mean) const {
    const double* q = inputs_.roles.at("query").row(at.b, at.h, at.t);
    const std::int64_t count = bases_.shape[1];
    Row u, logits;
    for (std::int64_t j = 0; j < count; ++j) {
      const double* basis = bases_.values.data() + (at.h * count + j) * width_;
      double of_mean = 0;
      double of_query = 0;
      for (std::int64_t d = 0; d < width_; ++d) {
        of_mean += basis[d] * mean[static_cast<std::size_t>(d)];
        of_query += basis[d] * q[d];
      }
      u.push_back(of_mean);
      logits.push_back(scale_ * of_query * of_mean);
    }
    const double greatest = *std::max_element(logits.begin(), logits.end());
    double total = 0;
    for (const double logit : logits) total += std::exp(logit - greatest);
    Row output(static_cast<std::size_t>(width_), 0.0);
    for (std::int64_t j = 0; j < count; ++j) {
      const auto i = static_cast<std::size_t>(j);
      const double factor = std::exp(logits[i] - greatest) / total * u[i];
      const double* basis = bases_.values.data() + (at.h * count + j) * width_;
      for (std::size_t d = 0; d < output.size(); ++d) output[d] += factor * basis[d];
    }
    return output;
  }

  const Problem& problem_;
  const ReferenceInputs& inputs_;
  const Window window_;
  const bool plain_;
  const bool raw_;  ///< whether the memory holds the context itself
  const bool local_alone_;
  const Array& bases_;
  const std::int64_t width_;
  double scale_ = 1;
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Row>> local_;
};

std::vector<double> lavo_rows(const Options& options, const Problem& problem,
                              const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  Lavo lavo(options, problem, inputs);
  std::vector<double> output;
  for (const RowIndex& at : rows) {
    const Row row = lavo.row(at);
    output.insert(output.end(), row.begin(), row.end());
  }
  return output;
}

}  // namespace

Reference lavo() { return lavo_rows; }

}  // namespace attnbench::reference
