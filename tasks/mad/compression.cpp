#include "tasks/mad/exercise.hpp"

namespace attnbench::tasks::mad {

Sheet compression(const Rules& rules, Draws& draws) {
  const std::int64_t sign = rules.vocabulary - 1;
  const std::int64_t last = rules.length - 1;
  Sheet sheet;
  for (std::int64_t place = 0; place < last; ++place) {
    const std::int64_t symbol = draws.below(sign);
    sheet.tokens.push_back(symbol);
    sheet.questions.push_back({last, symbol, last - place, place});
  }
  sheet.candidates = different(sheet.tokens);
  sheet.tokens.push_back(sign);
  return sheet;
}

}  // namespace attnbench::tasks::mad
