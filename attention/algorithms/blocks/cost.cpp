// What choosing blocks and mixing over them costs.
#include <algorithm>

#include "attention/algorithms/blocks/blocks.hpp"

namespace attnbench {
namespace {

double as_double(std::int64_t count) { return static_cast<double>(count); }

/// The sum of `of(rows, block)` over the blocks of a sequence, `rows` of each.
template <class Of>
double over_blocks(std::int64_t length, std::int64_t size, const Of& of) {
  double sum = 0;
  for (std::int64_t block = 0; block * size < length; ++block) {
    sum += of(as_double(std::min(size, length - block * size)), block);
  }
  return sum;
}

/// Rows of the first block, which all later queries may choose.
double viewers_of_first(std::int64_t length, std::int64_t size, std::int64_t count) {
  return over_blocks(length, size, [&](double rows, std::int64_t block) {
    return block == 0 ? rows : rows * std::min(1.0, as_double(count) / as_double(block));
  });
}

}  // namespace

double chosen_pairs(std::int64_t length, std::int64_t size, std::int64_t count) {
  return over_blocks(length, size, [&](double rows, std::int64_t block) {
    return rows * (rows + 1) / 2 + rows * as_double(std::min(block, count) * size);
  });
}

double scored_means(std::int64_t length, std::int64_t size) {
  return over_blocks(length, size,
                     [](double rows, std::int64_t block) { return rows * as_double(block); });
}

double choice_bytes(const Problem& problem, std::int64_t size, std::int64_t count) {
  const std::int64_t candidates = blocks_of(problem.length, size) - 1;
  const double heads = as_double(problem.batch * problem.heads);
  const double kept = heads * as_double(problem.length * std::min(count, candidates)) * 8;
  const double keys = as_double(problem.batch * problem.kv_heads) * as_double(problem.head_dim) * 8;
  const double sums = keys * as_double(2 * (candidates + 1));
  const double rows =
      std::clamp<double>(as_double(kScoresTogether) / (heads * as_double(candidates + 1)), 1,
                         as_double(problem.length));
  // Scores in double and what they are ranked by, and a part's queries in double.
  const double part = rows * heads * (29 * as_double(candidates) + 8 * as_double(problem.head_dim));
  return kept + sums + std::max(keys * as_double(problem.length), part);
}

Cost gathered_cost(const Problem& problem, std::int64_t size, std::int64_t count) {
  const double bytes = as_double(bytes_of(problem.dtype)), wide = std::max(4.0, bytes);
  const double heads = as_double(problem.batch * problem.heads);
  const double rows = heads * as_double(problem.length);
  const double key = as_double(problem.head_dim), value = as_double(problem.value_dim);
  // Whole blocks of a query's own, too.
  const double pairs =
      heads * over_blocks(problem.length, size, [&](double tokens, std::int64_t block) {
        return tokens * tokens + tokens * as_double(std::min(block, count) * size);
      });
  const double chosen = 8 * rows * as_double(std::min(count, blocks_of(problem.length, size) - 1));
  Cost cost;
  cost.executed_flops = 2 * (key + value) * pairs;
  cost.exponentials = pairs;
  // Queries and sums of all, and rows in the order of their blocks; beside them one block's scores,
  // queries, sums and outputs, and after these the output, which is not counted.
  const double narrow = bytes < 4 ? bytes : 0;
  const double block = heads * viewers_of_first(problem.length, size, count) *
                       (as_double(std::min(size, problem.length)) * (wide + narrow) + key * bytes +
                        (2 * value + 6) * wide);
  cost.workspace_bytes = 2 * chosen + rows * (key * bytes + (value + 2) * wide) +
                         std::max(0.0, block - rows * value * bytes);
  // The logarithms of the sums, and the choice.
  cost.saved_bytes = rows * wide + chosen;
  return cost;
}

}  // namespace attnbench
