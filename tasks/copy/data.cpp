#include "tasks/copy/data.hpp"

#include <algorithm>

#include "core/errors.hpp"
#include "core/random.hpp"

namespace attnbench::tasks::copy {
namespace {

/// The number of symbols of an example is at least `fewest` and below `bound`.
std::int64_t fewest(const CopyPlan& plan) { return plan.length / 4; }
std::int64_t bound(const CopyPlan& plan) {
  return std::max(fewest(plan) + 1, (plan.length - 1) / 2);
}

/// The question whose answer is the token at `position` + 1.
training::Question next_token(const Sequence& sequence, std::int64_t position) {
  const std::int64_t answer = sequence.tokens[static_cast<std::size_t>(position + 1)];
  const bool symbol = position >= sequence.symbols;
  return {position, answer, symbol ? sequence.symbols : 0};
}

/// With the next tokens from position `first` to that before the last symbol.
Example example_from(const Sequence& sequence, std::int64_t first) {
  Example example;
  const std::int64_t n = sequence.symbols;
  for (std::int64_t i = first; i < 2 * n; ++i) example.questions.push_back(next_token(sequence, i));
  example.candidates =
      training::sorted_unique({sequence.tokens.begin(), sequence.tokens.begin() + n});
  example.tokens = sequence.tokens;
  return example;
}

}  // namespace

Sequence make_sequence(const CopyPlan& plan, Split split, std::uint64_t number) {
  Random random(key_of({plan.seed, static_cast<std::uint64_t>(split)}), number);
  Sequence sequence;
  sequence.symbols = fewest(plan) + random.below(bound(plan) - fewest(plan));
  sequence.tokens.assign(static_cast<std::size_t>(plan.length), 0);
  for (std::int64_t i = 0; i < sequence.symbols; ++i) {
    const std::int64_t symbol = 1 + random.below(plan.vocabulary - 1);
    sequence.tokens[static_cast<std::size_t>(i)] = symbol;
    sequence.tokens[static_cast<std::size_t>(sequence.symbols + 1 + i)] = symbol;
  }
  return sequence;
}

CopyData::CopyData(const CopyPlan& plan) : plan_(plan) {
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

std::vector<training::SegmentSize> CopyData::segments(Split split) const {
  const double symbols = static_cast<double>(fewest(plan_) + bound(plan_) - 1) / 2;
  return {{std::to_string(plan_.length), plan_.length, plan_.of(split), symbols + 1}};
}

Example CopyData::scored(Split split, std::size_t, std::uint64_t number) const {
  const Sequence sequence = make_sequence(plan_, split, number);
  return example_from(sequence, sequence.symbols);
}

Example CopyData::learned(Split split, std::size_t, std::uint64_t number) const {
  const Sequence sequence = make_sequence(plan_, split, number);
  return example_from(sequence, sequence.symbols - 1);
}

}  // namespace attnbench::tasks::copy
