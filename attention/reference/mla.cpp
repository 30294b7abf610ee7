// Multi-head latent attention by its definition, query by query: DeepSeek-V2 (2024), section 2.1,
//   y_t = sum_s softmax_s(scale (q_t.(U c_s) + p_t.r_s)) V c_s,
// c_s the latent and r_s the rotary key of the head's group, (q_t, p_t) the query. By q.(U c) =
// (U^T q).c a row decompresses no key, and by linearity one value.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

using Vector = std::vector<double>;

/// The matrix [L, width] of head h in [H, L, width].
const double* of_head(const Array& matrices, std::int64_t h) {
  return matrices.values.data() + h * matrices.shape[1] * matrices.shape[2];
}

/// sum_i a_i b_i over `width` numbers.
double inner(const double* a, const double* b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t i = 0; i < width; ++i) sum += a[i] * b[i];
  return sum;
}

class MlaRow {
 public:
  MlaRow(const Options& options, const Problem& problem, const ReferenceInputs& inputs,
         const RowIndex& at)
      : inputs_(inputs),
        at_(at),
        query_(inputs.roles.at("query")),
        latent_(inputs.roles.at("latent")),
        group_(at.h / (query_.shape[1] / latent_.shape[1])),
        causal_(problem.pattern == Pattern::causal),
        scale_(options.number("scale") != 0 ? options.number("scale")
                                            : 1 / std::sqrt(static_cast<double>(query_.shape[3]))) {
  }

  Vector output() const {
    const Vector logits = scores();
    double top = -std::numeric_limits<double>::infinity();
    for (const double logit : logits) top = std::max(top, logit);
    Vector mixed(static_cast<std::size_t>(latent_.shape[3]), 0.0);
    double total = 0;
    for (std::size_t s = 0; s < logits.size() && !std::isinf(top); ++s) {
      const double weight = std::exp(logits[s] - top);
      const double* latent = latent_.row(at_.b, group_, static_cast<std::int64_t>(s));
      if (weight == 0) continue;  // padding may hold anything
      total += weight;
      for (std::size_t l = 0; l < mixed.size(); ++l) mixed[l] += weight * latent[l];
    }
    const Array& up = inputs_.parameters.at("value_up");
    const auto width = static_cast<std::size_t>(up.shape[2]);
    const double* rows = of_head(up, at_.h);
    Vector y(width, 0.0);
    if (total == 0) return y;
    for (std::size_t l = 0; l < mixed.size(); ++l) {
      for (std::size_t d = 0; d < width; ++d) y[d] += mixed[l] / total * rows[l * width + d];
    }
    return y;
  }

 private:
  /// Of all keys; -infinity where the query sees none.
  Vector scores() const {
    const Array& up = inputs_.parameters.at("key_up");
    const std::int64_t content = up.shape[2];
    const std::int64_t rotary = query_.shape[3] - content;
    const std::int64_t keys = latent_.shape[2];
    const double* query = query_.row(at_.b, at_.h, at_.t);
    const double* rows = of_head(up, at_.h);
    Vector absorbed;
    for (std::int64_t l = 0; l < latent_.shape[3]; ++l) {
      absorbed.push_back(inner(rows + l * content, query, content));
    }
    Vector logits;
    for (std::int64_t s = 0; s < keys; ++s) {
      const bool later = causal_ && s > at_.t + keys - query_.shape[2];
      if (later || !inputs_.visible(at_.b, s, keys)) {
        logits.push_back(-std::numeric_limits<double>::infinity());
        continue;
      }
      double product = inner(absorbed.data(), latent_.row(at_.b, group_, s), latent_.shape[3]);
      if (rotary > 0) {
        const double* key = inputs_.roles.at("key_rotary").row(at_.b, group_, s);
        product += inner(query + content, key, rotary);
      }
      logits.push_back(scale_ * product);
    }
    return logits;
  }

  const ReferenceInputs& inputs_;
  const RowIndex at_;
  const Array& query_;
  const Array& latent_;
  const std::int64_t group_;
  const bool causal_;
  const double scale_;
};

Vector mla_rows(const Options& options, const Problem& problem, const ReferenceInputs& inputs,
                const std::vector<RowIndex>& rows) {
  Vector output;
  for (const RowIndex& at : rows) {
    const Vector row = MlaRow(options, problem, inputs, at).output();
    output.insert(output.end(), row.begin(), row.end());
  }
  return output;
}

}  // namespace

Reference mla() { return mla_rows; }

}  // namespace attnbench::reference
