// example_mechanism by its definition, in double and in plain loops, sharing nothing with the
// mechanism:
//   y_t = sum_{s <= t} (f(q_t).f(k_s)) v_s / (sum_{s <= t} f(q_t).f(k_s) + epsilon),  f(x) = elu(x)
//   + 1.
#include "attention/reference/reference.hpp"

#include <cmath>

namespace attnbench::reference {
namespace {

double example_feature(double x) { return x > 0 ? x + 1 : std::exp(x); }

}  // namespace

Reference example_mechanism() {
  return [](const Options& options, const Problem& problem, const ReferenceInputs& inputs,
            const std::vector<RowIndex>& rows) {
    const Array& query = inputs.roles.at("query");
    const Array& key = inputs.roles.at("key");
    const Array& value = inputs.roles.at("value");
    const auto width = static_cast<std::size_t>(problem.value_dim);
    std::vector<double> result;
    for (const RowIndex& row : rows) {
      std::vector<double> sum(width, 0.0);
      double total = options.number("epsilon");
      for (std::int64_t s = 0; s <= row.t; ++s) {
        if (!inputs.visible(row.b, s, problem.key_length)) continue;
        double weight = 0;
        for (std::int64_t d = 0; d < problem.head_dim; ++d) {
          weight += example_feature(query.row(row.b, row.h, row.t)[d]) *
                    example_feature(key.row(row.b, row.h, s)[d]);
        }
        total += weight;
        for (std::size_t d = 0; d < width; ++d) sum[d] += weight * value.row(row.b, row.h, s)[d];
      }
      for (const double x : sum) result.push_back(total > 0 ? x / total : 0.0);
    }
    return result;
  };
}

}  // namespace attnbench::reference
