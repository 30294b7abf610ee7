#include <algorithm>

#include "attention/algorithms/lavo/lavo.hpp"

namespace attnbench::lavo {
namespace {

double real(std::int64_t count) { return static_cast<double>(count); }

/// Sizes as real numbers; an element in computation has at least 4 bytes.
struct Numbers {
  double heads, queries, keys, rows, width, bytes, wide;
};

Numbers numbers_of(const CostSizes& sizes) {
  const Problem& problem = sizes.problem;
  const double bytes = real(bytes_of(problem.dtype));
  return {real(problem.batch * problem.heads),
          real(problem.length),
          real(problem.key_length),
          real(sizes.bases),
          real(problem.head_dim),
          bytes,
          std::max(bytes, 4.0)};
}

bool causal(const CostSizes& sizes) { return sizes.problem.pattern == Pattern::causal; }

/// The pairs computed for `tokens` queries in blocks, and the keys held for them.
struct Local {
  double pairs = 0, keys = 0, columns = 0;
};

Local local_of(const CostSizes& sizes, std::int64_t tokens) {
  if (sizes.plain) return {};
  const auto block = band_block(tokens, sizes.window.left, sizes.window.right);
  const double blocks = real((tokens + block.rows - 1) / block.rows);
  return {blocks * real(block.rows * block.columns), blocks * real(block.columns),
          real(block.columns)};
}

/// Workspace of `tokens` tokens at once, beyond inputs and output.
double together_bytes(const CostSizes& sizes, const Numbers& n, std::int64_t tokens) {
  const double count = real(tokens);
  const Local local = local_of(sizes, tokens);
  // Logits, weights and, if each token has its own, coordinates; queries and output in float32.
  const double reading = (sizes.remembers_tokens() && causal(sizes) ? 5 : 3) * count * n.rows +
                         (n.bytes < n.wide ? 2 : 0) * count * n.width;
  if (sizes.plain) return n.heads * n.wide * reading;
  // Scores and weights, beside the padded queries, keys and values; then the local output.
  const double attending =
      2 * local.pairs + local.keys * n.width + 4 * count * n.width + local.pairs / n.wide / n.heads;
  return n.heads * n.wide * std::max(attending, reading + count * n.width);
}

}  // namespace

/// Means along the bases, logits, and reads.
double memory_flops(const CostSizes& sizes) {
  const Numbers n = numbers_of(sizes);
  const double product = 2 * n.heads * n.rows * n.width;
  double compressed = sizes.remembers_tokens() && causal(sizes) ? n.keys : 1;
  if (!sizes.remembers_tokens() && causal(sizes)) compressed = n.keys / real(sizes.window.left + 1);
  return product * (2 * n.queries + compressed);
}

Cost common_cost(const CostSizes& sizes) {
  const Numbers n = numbers_of(sizes);
  const Window window = sizes.window;
  Cost cost;
  cost.model_flops = memory_flops(sizes);
  const double inputs = (sizes.plain ? 1 : sizes.undissected ? 3 : 2) * n.keys;
  cost.minimal_bytes = n.heads * (2 * n.queries + inputs) * n.width * n.bytes +
                       n.heads / real(sizes.problem.batch) * n.rows * n.width * n.bytes;
  if (!sizes.plain) {
    cost.model_flops +=
        4 * n.heads * n.width * real(visible_pairs(sizes.problem, window.left, window.right));
  }
  if (causal(sizes)) {
    const double rings = 2 * std::min(real(window.left + 1), n.queries) * n.width * n.bytes;
    cost.state_bytes = n.heads * n.rows * n.wide + real(sizes.problem.batch) * 8;
    if (!sizes.plain) {
      cost.state_bytes += n.heads * rings;
      if (!sizes.undissected) {
        cost.state_bytes += n.heads * n.width * n.wide + real(sizes.problem.batch) * 8;
      }
    }
  }
  return cost;
}

Cost whole_cost(const CostSizes& sizes) {
  const Numbers n = numbers_of(sizes);
  const Local local = local_of(sizes, sizes.problem.length);
  Cost cost = common_cost(sizes);
  cost.executed_flops = memory_flops(sizes) + 4 * n.heads * n.width * local.pairs;
  cost.exponentials = n.heads * (local.pairs + n.queries * n.rows);
  cost.workspace_bytes = together_bytes(sizes, n, sizes.problem.length);
  cost.saved_bytes =
      n.heads * n.wide *
      (local.pairs + 2 * local.keys * n.width + (sizes.plain ? 0 : 2) * n.queries * n.width +
       (sizes.remembers_tokens() ? 4 : 3) * n.queries * n.rows);
  cost.backward_flops = 2;
  return cost;
}

Cost pieces_cost(const CostSizes& sizes, std::int64_t most) {
  const Numbers n = numbers_of(sizes);
  const std::int64_t window = sizes.window.left + 1;
  if (!sizes.plain) most = most >= window ? most / window * window : most;
  const std::int64_t tokens = std::min(most, sizes.problem.length);
  const double pieces = n.queries / real(tokens);
  const Local local = local_of(sizes, tokens);
  Cost cost = common_cost(sizes);
  cost.executed_flops = memory_flops(sizes) + 4 * n.heads * n.width * local.pairs * pieces;
  cost.exponentials = n.heads * (local.pairs * pieces + n.queries * n.rows);
  cost.workspace_bytes =
      together_bytes(sizes, n, tokens) + 2 * n.heads * n.wide * real(tokens) * n.width;
  cost.saved_bytes = n.heads * n.wide * pieces * (n.rows + (sizes.plain ? 0 : n.width));
  cost.backward_flops = 3;
  return cost;
}

}  // namespace attnbench::lavo
