// Nystroemformer by its definition, with matrices as plain loops: Xiong et al. 2021, eq. 13, with
// the iteration of eq. 11. Segments are of the visible tokens: of n of them, that of rank r lies in
// segment floor(r m / n), m at most n.
#include <algorithm>
#include <cmath>
#include <map>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<double> numbers;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), numbers(r * c, 0.0) {}
  double& at(std::size_t i, std::size_t j) { return numbers[i * columns + j]; }
  double at(std::size_t i, std::size_t j) const { return numbers[i * columns + j]; }
};

Matrix times(const Matrix& a, const Matrix& b) {
  Matrix product(a.rows, b.columns);
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t k = 0; k < a.columns; ++k) {
      for (std::size_t j = 0; j < b.columns; ++j) product.at(i, j) += a.at(i, k) * b.at(k, j);
    }
  }
  return product;
}

/// factor I - a
Matrix less(double factor, const Matrix& a) {
  Matrix result = a;
  for (double& each : result.numbers) each = -each;
  for (std::size_t i = 0; i < a.rows; ++i) result.at(i, i) += factor;
  return result;
}

/// softmax over the rows of a b^T / sqrt(D)
Matrix attention(const Matrix& a, const Matrix& b) {
  Matrix weights(a.rows, b.rows);
  for (std::size_t i = 0; i < a.rows; ++i) {
    double maximum = -HUGE_VAL;
    for (std::size_t j = 0; j < b.rows; ++j) {
      for (std::size_t d = 0; d < a.columns; ++d) weights.at(i, j) += a.at(i, d) * b.at(j, d);
      weights.at(i, j) /= std::sqrt(static_cast<double>(a.columns));
      maximum = std::max(maximum, weights.at(i, j));
    }
    double total = 0;
    for (std::size_t j = 0; j < b.rows; ++j) {
      total += weights.at(i, j) = std::exp(weights.at(i, j) - maximum);
    }
    for (std::size_t j = 0; j < b.rows; ++j) weights.at(i, j) /= total;
  }
  return weights;
}

Matrix segment_means(const Matrix& tokens, std::size_t segments) {
  Matrix means(segments, tokens.columns);
  std::vector<double> counts(segments, 0.0);
  for (std::size_t r = 0; r < tokens.rows; ++r) {
    const std::size_t segment = r * segments / tokens.rows;
    ++counts[segment];
    for (std::size_t d = 0; d < tokens.columns; ++d) means.at(segment, d) += tokens.at(r, d);
  }
  for (std::size_t i = 0; i < segments; ++i) {
    for (std::size_t d = 0; d < tokens.columns; ++d) means.at(i, d) /= counts[i];
  }
  return means;
}

Matrix iterated(const Matrix& a, std::int64_t iterations) {
  Matrix z(a.columns, a.rows);
  double norm = 0;
  for (std::size_t j = 0; j < a.columns; ++j) {
    double sum = 0;
    for (std::size_t i = 0; i < a.rows; ++i) sum += a.at(i, j);
    norm = std::max(norm, sum);
  }
  for (std::size_t i = 0; i < a.rows; ++i) {
    for (std::size_t j = 0; j < a.columns; ++j) z.at(j, i) = a.at(i, j) / norm;
  }
  for (std::int64_t i = 0; i < iterations; ++i) {
    const Matrix az = times(a, z);
    z = times(z, less(13, times(az, less(15, times(az, less(7, az))))));
    for (double& each : z.numbers) each /= 4;
  }
  return z;
}

/// What every query of a head reads: landmarks of the keys, and Z softmax(Q~ K^T) V.
struct NystromHead {
  Matrix key_marks, values;
};

Matrix visible_tokens(const Problem& problem, const ReferenceInputs& inputs, const char* role,
                      std::int64_t b, std::int64_t h) {
  const Array& from = inputs.roles.at(role);
  Matrix tokens(0, static_cast<std::size_t>(from.shape[3]));
  for (std::int64_t s = 0; s < problem.key_length; ++s) {
    if (!inputs.visible(b, s, problem.key_length)) continue;
    tokens.numbers.insert(tokens.numbers.end(), from.row(b, h, s),
                          from.row(b, h, s) + from.shape[3]);
    ++tokens.rows;
  }
  return tokens;
}

std::vector<double> nystromformer_rows(const Options& options, const Problem& problem,
                                       const ReferenceInputs& inputs,
                                       const std::vector<RowIndex>& rows) {
  std::map<std::pair<std::int64_t, std::int64_t>, NystromHead> heads;
  const Array& query = inputs.roles.at("query");
  std::vector<double> output;
  for (const RowIndex& row : rows) {
    auto found = heads.find({row.b, row.h});
    if (found == heads.end()) {
      const Matrix q = visible_tokens(problem, inputs, "query", row.b, row.h);
      const Matrix k = visible_tokens(problem, inputs, "key", row.b, row.h);
      const Matrix v = visible_tokens(problem, inputs, "value", row.b, row.h);
      NystromHead head{Matrix(0, k.columns), Matrix(0, v.columns)};
      if (k.rows > 0) {
        const auto landmarks = static_cast<std::size_t>(options.integer("landmarks"));
        const std::size_t segments = std::min(landmarks, k.rows);
        const Matrix query_marks = segment_means(q, segments);
        head.key_marks = segment_means(k, segments);
        const Matrix inverse =
            iterated(attention(query_marks, head.key_marks), options.integer("iterations"));
        head.values = times(inverse, times(attention(query_marks, k), v));
      }
      found = heads.emplace(std::make_pair(row.b, row.h), std::move(head)).first;
    }
    const NystromHead& head = found->second;
    Matrix q(1, static_cast<std::size_t>(query.shape[3]));
    const double* begin = query.row(row.b, row.h, row.t);
    // A query that is padding reads as if it were 0.
    if (inputs.visible(row.b, row.t, problem.key_length)) {
      q.numbers.assign(begin, begin + query.shape[3]);
    }
    if (head.key_marks.rows == 0) {
      output.insert(output.end(), head.values.columns, 0.0);
      continue;
    }
    const Matrix y = times(attention(q, head.key_marks), head.values);
    output.insert(output.end(), y.numbers.begin(), y.numbers.end());
  }
  return output;
}

}  // namespace

Reference nystromformer() { return nystromformer_rows; }

}  // namespace attnbench::reference
