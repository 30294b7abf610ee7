#include "tasks/copy/data.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "tasks/training/draws.hpp"

namespace attnbench::tasks::copy {
namespace {

/// Symbols of an example: from `fewest` on, below `bound`.
std::int64_t fewest(const Plan& plan) { return plan.length / 4; }
std::int64_t bound(const Plan& plan) { return std::max(fewest(plan) + 1, (plan.length - 1) / 2); }

/// The question whose answer is the token at `position` + 1.
learning::Question next_token(const Example& example, std::int64_t position) {
  const std::int64_t answer = example.tokens[static_cast<std::size_t>(position + 1)];
  const bool symbol = position >= example.symbols;
  return {position, answer, symbol ? example.symbols : 0};
}

/// The next tokens from position `first` to the last symbol's.
learning::Sheet sheet_of(const Example& example, std::int64_t first) {
  learning::Sheet sheet;
  const std::int64_t n = example.symbols;
  for (std::int64_t i = first; i < 2 * n; ++i) sheet.questions.push_back(next_token(example, i));
  sheet.candidates.assign(example.tokens.begin(), example.tokens.begin() + n);
  std::sort(sheet.candidates.begin(), sheet.candidates.end());
  sheet.candidates.erase(std::unique(sheet.candidates.begin(), sheet.candidates.end()),
                         sheet.candidates.end());
  sheet.tokens = example.tokens;
  return sheet;
}

}  // namespace

Example make_example(const Plan& plan, Split split, std::uint64_t number) {
  learning::Draws draws(learning::key_of({plan.seed, static_cast<std::uint64_t>(split)}), number);
  Example example;
  example.symbols = fewest(plan) + draws.below(bound(plan) - fewest(plan));
  example.tokens.assign(static_cast<std::size_t>(plan.length), 0);
  for (std::int64_t i = 0; i < example.symbols; ++i) {
    const std::int64_t symbol = 1 + draws.below(plan.vocabulary - 1);
    example.tokens[static_cast<std::size_t>(i)] = symbol;
    example.tokens[static_cast<std::size_t>(example.symbols + 1 + i)] = symbol;
  }
  return example;
}

CopyData::CopyData(const Plan& plan) : plan_(plan) {
  if (plan.length < 4) {
    throw UsageError("the length " + std::to_string(plan.length) +
                     " leaves no room for a symbol, the separator and the symbol again: say 4 or "
                     "more");
  }
  if (plan.vocabulary < 3) {
    throw UsageError("the vocabulary " + std::to_string(plan.vocabulary) +
                     " has no two symbols beside the separator: say 3 or more");
  }
}

std::vector<learning::SegmentSize> CopyData::segments(Split split) const {
  const double symbols = static_cast<double>(fewest(plan_) + bound(plan_) - 1) / 2;
  return {{std::to_string(plan_.length), plan_.length, plan_.of(split), symbols + 1}};
}

learning::Sheet CopyData::asked(Split split, std::size_t, std::uint64_t number) const {
  const Example example = make_example(plan_, split, number);
  return sheet_of(example, example.symbols);
}

/// The separator, too.
learning::Sheet CopyData::learned(Split split, std::size_t, std::uint64_t number) const {
  const Example example = make_example(plan_, split, number);
  return sheet_of(example, example.symbols - 1);
}

}  // namespace attnbench::tasks::copy
