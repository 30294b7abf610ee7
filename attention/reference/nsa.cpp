// Native Sparse Attention by its definition, query by query: Yuan et al. 2025, equations 5 to 12,
//   y_t = sigmoid(c_t) C_t + sigmoid(d_t) S_t + sigmoid(w_t) W_t,
//   C_t: attention over the means of the blocks whose last token is t or before it,
//   S_t: over the tokens s <= t of t's own block, of the one before, of the first and of those with
//   the greatest weights in C_t, summed over the heads that share a key head and compared in
//   float32; of equal ones the earlier. W_t: over a window. Blocks without a real token are not
//   there.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "attention/reference/reference.hpp"

namespace attnbench::reference {
namespace {

/// Pairs of a key and a value, which may be those of a block.
struct Pairs {
  std::vector<std::vector<double>> keys, values;
};

/// Numbers and means of the blocks whose last token is a query's or before it.
struct Means {
  std::vector<std::int64_t> blocks;
  Pairs pairs;
};

class NsaDefinition {
 public:
  NsaDefinition(const Options& options, const Problem& problem, const ReferenceInputs& inputs)
      : options_(options),
        problem_(problem),
        inputs_(inputs),
        size_(options.integer("block")),
        sharing_(problem.heads / problem.kv_heads) {}

  std::vector<double> row(const RowIndex& at) const {
    std::vector<double> y(static_cast<std::size_t>(problem_.value_dim), 0.0);
    const auto add = [&](const char* gate, const Pairs& pairs) {
      const double logit = inputs_.roles.at(gate).row(at.b, at.h, at.t)[0];
      const std::vector<double> weights = weights_of(at, pairs);
      for (std::size_t i = 0; i < weights.size(); ++i) {
        for (std::size_t d = 0; d < y.size(); ++d) {
          y[d] += weights[i] * pairs.values[i][d] / (1 + std::exp(-logit));
        }
      }
    };
    const Means means = means_of(at);
    add("gate_compressed", means.pairs);
    Pairs selected;
    for (const std::int64_t block : chosen(at, means)) {
      add_tokens(at, block * size_, std::min(at.t, (block + 1) * size_ - 1), selected);
    }
    add("gate_selected", selected);
    Pairs near;
    add_tokens(at, std::max<std::int64_t>(0, at.t - options_.window("window").left), at.t, near);
    add("gate_window", near);
    return y;
  }

 private:
  std::vector<double> token(const char* role, const RowIndex& at, std::int64_t s) const {
    const Array& from = inputs_.roles.at(role);
    const double* begin = from.row(at.b, at.h / sharing_, s);
    return {begin, begin + from.shape[3]};
  }

  bool real(const RowIndex& at, std::int64_t s) const {
    return inputs_.visible(at.b, s, problem_.key_length);
  }

  /// Real tokens first to last.
  void add_tokens(const RowIndex& at, std::int64_t first, std::int64_t last, Pairs& pairs) const {
    for (std::int64_t s = first; s <= last; ++s) {
      if (!real(at, s)) continue;
      pairs.keys.push_back(token("key", at, s));
      pairs.values.push_back(token("value", at, s));
    }
  }

  static std::vector<double> mean(const std::vector<std::vector<double>>& rows) {
    std::vector<double> sum(rows.front().size(), 0.0);
    for (const auto& row : rows) {
      for (std::size_t d = 0; d < sum.size(); ++d) sum[d] += row[d];
    }
    for (double& each : sum) each /= static_cast<double>(rows.size());
    return sum;
  }

  Means means_of(const RowIndex& at) const {
    Means all;
    for (std::int64_t block = 0; (block + 1) * size_ <= at.t + 1; ++block) {
      Pairs tokens;
      add_tokens(at, block * size_, (block + 1) * size_ - 1, tokens);
      if (tokens.keys.empty()) continue;
      all.blocks.push_back(block);
      all.pairs.keys.push_back(mean(tokens.keys));
      all.pairs.values.push_back(mean(tokens.values));
    }
    return all;
  }

  /// The softmax of the query's scores.
  std::vector<double> weights_of(const RowIndex& at, const Pairs& pairs) const {
    const double* query = inputs_.roles.at("query").row(at.b, at.h, at.t);
    const double said = options_.number("scale");
    const double scale = said != 0 ? said : 1 / std::sqrt(static_cast<double>(problem_.head_dim));
    std::vector<double> weights;
    for (const auto& key : pairs.keys) {
      double score = 0;
      for (std::size_t d = 0; d < key.size(); ++d) score += query[d] * key[d];
      weights.push_back(scale * score);
    }
    if (weights.empty()) return weights;
    const double greatest = *std::max_element(weights.begin(), weights.end());
    double total = 0;
    for (double& each : weights) total += each = std::exp(each - greatest);
    for (double& each : weights) each /= total;
    return weights;
  }

  /// The blocks whose tokens the query sees.
  std::set<std::int64_t> chosen(const RowIndex& at, const Means& means) const {
    const std::int64_t own = at.t / size_;
    std::map<std::int64_t, double> weights;  // of blocks before its own
    for (std::int64_t i = 0; i < sharing_; ++i) {
      const RowIndex head{at.b, at.h / sharing_ * sharing_ + i, at.t};
      const std::vector<double> of_head = weights_of(head, means.pairs);
      for (std::size_t n = 0; n < of_head.size(); ++n) {
        if (means.blocks[n] < own) weights[means.blocks[n]] += of_head[n];
      }
    }
    for (auto& [block, weight] : weights) {
      if (block == 0 || block == own - 1) weight = HUGE_VAL;
    }
    std::vector<std::pair<std::int64_t, double>> ranked(weights.begin(), weights.end());
    std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) {
      return static_cast<float>(a.second) > static_cast<float>(b.second);
    });
    std::set<std::int64_t> seen{own};
    for (const auto& [block, weight] : ranked) {
      if (static_cast<std::int64_t>(seen.size()) == options_.integer("blocks")) break;
      seen.insert(block);
    }
    return seen;
  }

  const Options& options_;
  const Problem& problem_;
  const ReferenceInputs& inputs_;
  const std::int64_t size_, sharing_;
};

}  // namespace

Reference nsa() {
  return [](const Options& options, const Problem& problem, const ReferenceInputs& inputs,
            const std::vector<RowIndex>& rows) {
    const NsaDefinition definition(options, problem, inputs);
    std::vector<double> output;
    for (const RowIndex& at : rows) {
      const std::vector<double> y = definition.row(at);
      output.insert(output.end(), y.begin(), y.end());
    }
    return output;
  };
}

}  // namespace attnbench::reference
