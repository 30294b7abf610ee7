#include <algorithm>
#include <cmath>

#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::verdict {
namespace {

enum class Side { faster, slower, unclear };

/// log(time of the mechanism / time of exact attention): negative if the mechanism is faster.
struct LogRatio {
  double low = 0;
  double middle = 0;
  double high = 0;

  Side side() const {
    if (high < 0) return Side::faster;
    return low > 0 ? Side::slower : Side::unclear;
  }
};

LogRatio log_ratio(const Time& own, const Time& exact) {
  return {std::log(own.low / exact.high), std::log(own.median / exact.median),
          std::log(own.high / exact.low)};
}

/// Where the line through (a, at_a) and (b, at_b) is 0, in logarithms of the length; at_a and at_b
/// have different signs.
double meeting(double a, double at_a, double b, double at_b) {
  const double share = at_a / (at_a - at_b);
  return std::exp(std::log(a) + share * (std::log(b) - std::log(a)));
}

/// The first or the last place between `begin` and `end` where `member` falls below 0.
double falls_below(const std::vector<double>& lengths, const std::vector<LogRatio>& ratios,
                   double LogRatio::*member, std::size_t begin, std::size_t end, bool last) {
  double found = lengths[end];
  for (std::size_t i = begin; i < end; ++i) {
    const double here = ratios[i].*member;
    const double next = ratios[i + 1].*member;
    if (here < 0 || next >= 0) continue;
    found = meeting(lengths[i], here, lengths[i + 1], next);
    if (!last) return found;
  }
  return found;
}

/// What the sides alone say; `first` is where the faster lengths at the end begin.
CrossingKind kind_of(const std::vector<LogRatio>& ratios, std::size_t first) {
  bool faster_before = false, slower_again = false;
  for (std::size_t i = 0; i < first; ++i) {
    faster_before |= ratios[i].side() == Side::faster;
    slower_again |= faster_before && ratios[i].side() == Side::slower;
  }
  if (first == 0) return CrossingKind::below;
  if (first < ratios.size()) return slower_again ? CrossingKind::several : CrossingKind::found;
  if (ratios.back().side() == Side::unclear) return CrossingKind::undecided;
  return faster_before ? CrossingKind::reverse : CrossingKind::none;
}

}  // namespace

CrossingStatement cross(const std::vector<double>& lengths, const std::vector<Time>& times,
                        const std::vector<Time>& exact, const std::vector<double>& without) {
  std::vector<LogRatio> ratios;
  for (std::size_t i = 0; i < lengths.size(); ++i) ratios.push_back(log_ratio(times[i], exact[i]));
  std::size_t first = ratios.size();
  while (first > 0 && ratios[first - 1].side() == Side::faster) --first;
  CrossingStatement crossover;
  crossover.shortest = lengths.front();
  crossover.longest = lengths.back();
  crossover.crossing = kind_of(ratios, first);
  if (crossover.crossing != CrossingKind::found) return crossover;
  std::size_t slower = first;
  while (slower > 0 && ratios[slower].side() != Side::slower) --slower;
  const bool bounded = ratios[slower].side() == Side::slower;
  if (bounded) {
    crossover.low = falls_below(lengths, ratios, &LogRatio::low, slower, first, false);
  }
  crossover.high = falls_below(lengths, ratios, &LogRatio::high, slower, first, true);
  crossover.within_gap = std::any_of(without.begin(), without.end(), [&](double length) {
    return length > lengths[slower] && length < lengths[first];
  });
  if (crossover.within_gap) {
    if (bounded) crossover.low = lengths[slower];
    crossover.high = lengths[first];
  }
  // Without a slower length the medians may not meet among the measured ones.
  const bool meets = ratios[slower].middle >= 0;
  crossover.length = meets ? falls_below(lengths, ratios, &LogRatio::middle, slower, first, true)
                           : lengths[slower];
  return crossover;
}

}  // namespace attnbench::reports::verdict
