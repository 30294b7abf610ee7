#include "tasks/mad/exercise.hpp"

namespace attnbench::tasks::mad {

Sheet selective_copying(const Rules& rules, Draws& draws) {
  const std::int64_t copy = rules.vocabulary - 1;
  const std::int64_t blank = rules.vocabulary - 2;
  const std::int64_t blanks = rules.length - 2 * rules.symbols - 1;
  // Each blank goes before a symbol of its own choice: none comes between the last and the sign.
  Tokens before(static_cast<std::size_t>(rules.symbols), 0);
  for (std::int64_t i = 0; i < blanks; ++i) {
    ++before[static_cast<std::size_t>(draws.below(rules.symbols))];
  }
  Sheet sheet;
  Tokens places;
  for (const std::int64_t count : before) {
    sheet.tokens.insert(sheet.tokens.end(), static_cast<std::size_t>(count), blank);
    places.push_back(static_cast<std::int64_t>(sheet.tokens.size()));
    sheet.tokens.push_back(draws.below(blank));
  }
  sheet.tokens.push_back(copy);
  for (const std::int64_t place : places) {
    const auto position = static_cast<std::int64_t>(sheet.tokens.size());
    const std::int64_t symbol = sheet.tokens[static_cast<std::size_t>(place)];
    sheet.questions.push_back({position, symbol, position - place});
    sheet.candidates.push_back(symbol);
    sheet.tokens.push_back(blank);
  }
  sheet.candidates = different(std::move(sheet.candidates));
  return sheet;
}

}  // namespace attnbench::tasks::mad
