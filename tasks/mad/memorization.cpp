#include <numeric>

#include "tasks/mad/exercise.hpp"

namespace attnbench::tasks::mad {
namespace {

/// Value i is that of key i: the same in all examples and splits of a seed.
Tokens values_of(std::int64_t first, std::int64_t last, std::uint64_t seed) {
  Tokens values(static_cast<std::size_t>(last - first));
  std::iota(values.begin(), values.end(), first);
  Draws(learning::key_of({seed, 0x6d6170 /* "map" */}), 0).shuffle(values);
  return values;
}

}  // namespace

Sheet memorization(const Rules& rules, std::uint64_t seed, Draws& draws) {
  const std::int64_t sign = rules.vocabulary - 1;
  const std::int64_t keys = sign / 2;
  const Tokens values = values_of(keys, sign, seed);
  Sheet sheet;
  for (std::int64_t pair = 0; pair < rules.length / 2; ++pair) {
    const std::int64_t key = draws.below(keys);
    sheet.tokens.push_back(key);
    sheet.questions.push_back({2 * pair + 1, values[static_cast<std::size_t>(key)], 0});
    sheet.tokens.push_back(sign);
  }
  return sheet;
}

}  // namespace attnbench::tasks::mad
