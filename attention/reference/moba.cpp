// Mixture of Block Attention by its definition, query by query: Lu et al. 2025, equations 2 to 6,
//   y_t = softmax over the keys s <= t of t's own block and of the chosen ones of (scale q_t.k_s)
//   v_s,
// chosen: of the blocks that end before t's own begins and hold a real token, those with the
// greatest q_t . mean(k), compared in float32; of equal ones the earlier.
#include <algorithm>
#include <cmath>
#include <set>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

double scalar_product(const double* a, const double* b, std::int64_t width) {
  double sum = 0;
  for (std::int64_t d = 0; d < width; ++d) sum += a[d] * b[d];
  return sum;
}

/// A block before a query's own, and how it scores.
struct Candidate {
  std::int64_t block;
  float score;
};

std::vector<Candidate> candidates(const Problem& problem, const ReferenceInputs& inputs,
                                  const RowIndex& at, std::int64_t size) {
  const Array& query = inputs.roles.at("query");
  const Array& key = inputs.roles.at("key");
  const std::int64_t sharing = problem.heads / problem.kv_heads, width = key.shape[3];
  std::vector<Candidate> all;
  for (std::int64_t block = 0; block < at.t / size; ++block) {
    std::vector<double> mean(static_cast<std::size_t>(width), 0.0);
    double tokens = 0;
    for (std::int64_t s = block * size; s < (block + 1) * size; ++s) {
      if (!inputs.visible(at.b, s, problem.key_length)) continue;
      tokens += 1;
      for (std::size_t d = 0; d < mean.size(); ++d) mean[d] += key.row(at.b, at.h / sharing, s)[d];
    }
    if (tokens == 0) continue;
    for (double& each : mean) each /= tokens;
    const double score = scalar_product(query.row(at.b, at.h, at.t), mean.data(), width);
    all.push_back({block, static_cast<float>(score)});
  }
  return all;
}

/// The blocks that the query sees.
std::set<std::int64_t> seen_blocks(const Options& options, const Problem& problem,
                                   const ReferenceInputs& inputs, const RowIndex& at) {
  const std::int64_t size = options.integer("block");
  std::vector<Candidate> all = candidates(problem, inputs, at, size);
  std::stable_sort(all.begin(), all.end(),
                   [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
  std::set<std::int64_t> seen{at.t / size};
  for (const Candidate& each : all) {
    if (static_cast<std::int64_t>(seen.size()) == options.integer("blocks")) break;
    seen.insert(each.block);
  }
  return seen;
}

std::vector<double> moba_rows(const Options& options, const Problem& problem,
                              const ReferenceInputs& inputs, const std::vector<RowIndex>& rows) {
  const Array& query = inputs.roles.at("query");
  const Array& key = inputs.roles.at("key");
  const Array& value = inputs.roles.at("value");
  const std::int64_t sharing = problem.heads / problem.kv_heads, width = key.shape[3];
  const std::int64_t size = options.integer("block");
  const double said = options.number("scale");
  const double scale = said != 0 ? said : 1 / std::sqrt(static_cast<double>(width));
  std::vector<double> output;
  for (const RowIndex& at : rows) {
    std::vector<std::int64_t> tokens;
    std::vector<double> scores;
    for (const std::int64_t block : seen_blocks(options, problem, inputs, at)) {
      for (std::int64_t s = block * size; s <= std::min(at.t, (block + 1) * size - 1); ++s) {
        if (!inputs.visible(at.b, s, problem.key_length)) continue;
        tokens.push_back(s);
        scores.push_back(scale * scalar_product(query.row(at.b, at.h, at.t),
                                                key.row(at.b, at.h / sharing, s), width));
      }
    }
    std::vector<double> y(static_cast<std::size_t>(value.shape[3]), 0.0);
    double total = 0;
    const auto greatest = std::max_element(scores.begin(), scores.end());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const double weight = std::exp(scores[i] - *greatest);
      const double* row = value.row(at.b, at.h / sharing, tokens[i]);
      total += weight;
      for (std::size_t d = 0; d < y.size(); ++d) y[d] += weight * row[d];
    }
    if (total > 0) {
      for (double& each : y) each /= total;
    }
    output.insert(output.end(), y.begin(), y.end());
  }
  return output;
}

}  // namespace

Reference moba() { return moba_rows; }

}  // namespace attnbench::reference
