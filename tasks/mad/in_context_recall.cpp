#include <map>

#include "tasks/mad/exercise.hpp"

namespace attnbench::tasks::mad {
namespace {

/// A key's value, and where it stood last.
struct Known {
  std::int64_t value = 0;
  std::int64_t place = 0;
};

}  // namespace

Sheet in_context_recall(const Rules& rules, Draws& draws) {
  const std::int64_t clear = rules.vocabulary - rules.noise_tokens;
  const std::int64_t keys = clear / 2;
  const std::int64_t pairs = rules.length / 2;
  const std::int64_t never_noise = draws.below(pairs - 1);
  Sheet sheet;
  std::map<std::int64_t, Known> known;
  const auto write_pair = [&](std::int64_t key) {
    const auto position = static_cast<std::int64_t>(sheet.tokens.size());
    const auto before = known.find(key);
    if (before == known.end()) {
      known[key] = {keys + draws.below(clear - keys), position + 1};
    } else {
      Known& own = before->second;
      sheet.questions.push_back({position, own.value, position - own.place});
      own.place = position + 1;
    }
    sheet.tokens.push_back(key);
    sheet.tokens.push_back(known[key].value);
  };
  for (std::int64_t pair = 0; pair < pairs - 1; ++pair) {
    const bool noise = rules.noise > 0 && pair != never_noise && draws.uniform() < rules.noise;
    if (!noise) {
      write_pair(draws.below(keys));
      continue;
    }
    for (int i = 0; i < 2; ++i) sheet.tokens.push_back(clear + draws.below(rules.noise_tokens));
  }
  auto last = known.begin();
  std::advance(last, draws.below(static_cast<std::int64_t>(known.size())));
  write_pair(last->first);
  for (const auto& [key, own] : known) sheet.candidates.push_back(own.value);
  sheet.candidates = different(std::move(sheet.candidates));
  return sheet;
}

}  // namespace attnbench::tasks::mad
