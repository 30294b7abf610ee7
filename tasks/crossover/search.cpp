#include "tasks/crossover/search.hpp"

#include <algorithm>
#include <cmath>

namespace attnbench::tasks::crossover {
namespace {

/// A ratio that falls by less than this power of the length is not on its way to 1.
constexpr double least_gain = 0.1;
/// Of how many of the longest lengths the trend is taken.
constexpr std::size_t trend_lengths = 3;

bool is_decided(const Trial& trial) {
  return trial.faster == Faster::exact || trial.faster == Faster::mechanism;
}

/// The exponent by which the ratio falls with the length, over the longest ones; 0 without two.
double gain_of(const std::vector<Trial>& decided) {
  const std::size_t count = std::min(trend_lengths, decided.size());
  double mean_x = 0;
  double mean_y = 0;
  const auto begin = decided.end() - static_cast<std::ptrdiff_t>(count);
  for (auto trial = begin; trial != decided.end(); ++trial) {
    mean_x += std::log(static_cast<double>(trial->length)) / static_cast<double>(count);
    mean_y += std::log(trial->ratio) / static_cast<double>(count);
  }
  double covariance = 0;
  double variance = 0;
  for (auto trial = begin; trial != decided.end(); ++trial) {
    const double x = std::log(static_cast<double>(trial->length)) - mean_x;
    covariance += x * (std::log(trial->ratio) - mean_y);
    variance += x * x;
  }
  return variance > 0 ? -covariance / variance : 0;
}

/// Between two lengths, in logarithms; nothing where there is no whole number in between.
std::optional<std::int64_t> between(std::int64_t low, std::int64_t high) {
  if (high - low < 2) return std::nullopt;
  const double middle = std::sqrt(static_cast<double>(low) * static_cast<double>(high));
  return std::clamp<std::int64_t>(std::llround(middle), low + 1, high - 1);
}

double width(std::int64_t low, std::int64_t high) {
  return static_cast<double>(high) / static_cast<double>(low);
}

/// Narrows one crossing. Lengths that stay undecided form a zone in its middle, whose two edges are
/// then looked for apart.
class Narrowing {
 public:
  Narrowing(const Range& range, Crossing crossing) : range_(range), crossing_(crossing) {}

  /// `trials` gets what was tried. False where the search has to end.
  bool run(const Compare& compare, std::vector<Trial>& trials) {
    while (const auto next = next_length()) {
      const std::optional<Trial> trial = compare(*next);
      if (!trial) return false;
      trials.push_back(*trial);
      if (trial->faster == Faster::untried) return true;
      take(*trial);
    }
    return true;
  }

  void undecided_at(std::int64_t length) {
    zone_low_ = zone_low_ ? std::min(*zone_low_, length) : length;
    zone_high_ = zone_high_ ? std::max(*zone_high_, length) : length;
  }

  const Crossing& crossing() const { return crossing_; }

 private:
  std::optional<std::int64_t> next_length() const {
    const std::int64_t first_end = zone_low_.value_or(crossing_.high);
    const std::int64_t second_begin = zone_high_.value_or(crossing_.high);
    const double first = width(crossing_.low, first_end);
    const double second = width(second_begin, crossing_.high);
    const bool take_first = first >= second;
    if (std::max(first, second) <= 1 + range_.resolution) return std::nullopt;
    return take_first ? between(crossing_.low, first_end) : between(second_begin, crossing_.high);
  }

  void take(const Trial& trial) {
    if (trial.faster == Faster::undecided) {
      undecided_at(trial.length);
      return;
    }
    (trial.faster == crossing_.from ? crossing_.low : crossing_.high) = trial.length;
    // A decision beyond the zone contradicts it: what is decided counts.
    if (!zone_low_ || (crossing_.low < *zone_low_ && *zone_high_ < crossing_.high)) return;
    zone_low_.reset();
    zone_high_.reset();
  }

  const Range range_;
  Crossing crossing_;
  std::optional<std::int64_t> zone_low_;
  std::optional<std::int64_t> zone_high_;
};

std::vector<Narrowing> changes(const Range& range, const std::vector<Trial>& coarse) {
  std::vector<Narrowing> found;
  const Trial* before = nullptr;
  for (const Trial& trial : coarse) {
    if (!is_decided(trial)) continue;
    if (before != nullptr && before->faster != trial.faster) {
      Narrowing change(range, {before->length, trial.length, before->faster});
      for (const Trial& other : coarse) {
        const bool inside = before->length < other.length && other.length < trial.length;
        if (inside && other.faster == Faster::undecided) change.undecided_at(other.length);
      }
      found.push_back(change);
    }
    before = &trial;
  }
  return found;
}

}  // namespace

const char* to_string(Faster faster) {
  switch (faster) {
    case Faster::exact:
      return "exact";
    case Faster::mechanism:
      return "mechanism";
    case Faster::undecided:
      return "undecided";
    case Faster::untried:
      return "untried";
  }
  return "";
}

std::vector<std::int64_t> coarse_lengths(std::int64_t minimum, std::int64_t maximum) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t length = minimum; length < maximum; length *= 2) lengths.push_back(length);
  lengths.push_back(maximum);
  return lengths;
}

Found judged(std::vector<Trial> trials, std::vector<Crossing> crossings) {
  Found found;
  found.trials = std::move(trials);
  found.crossings = std::move(crossings);
  std::vector<Trial> decided;
  std::copy_if(found.trials.begin(), found.trials.end(), std::back_inserter(decided), is_decided);
  if (decided.empty()) {
    found.verdict = "undecided";
  } else if (found.crossings.size() > 1) {
    found.verdict = "several";
  } else if (found.crossings.size() == 1) {
    const Crossing& only = found.crossings.front();
    found.verdict = only.from == Faster::exact ? "found" : "reverse";
    found.low = only.low;
    found.high = only.high;
  } else if (decided.front().faster == Faster::mechanism) {
    found.verdict = "below";
    found.high = decided.front().length;
  } else {
    // One length shows no trend: it is not said that there is none.
    found.verdict = decided.size() > 1 && gain_of(decided) < least_gain ? "none" : "above";
    found.low = decided.back().length;
  }
  return found;
}

Found search(const Range& range, const Compare& compare) {
  std::vector<Trial> trials;
  bool goes_on = true;
  for (const std::int64_t length : coarse_lengths(range.minimum, range.maximum)) {
    const std::optional<Trial> trial = compare(length);
    goes_on = trial.has_value();
    if (!goes_on) break;
    trials.push_back(*trial);
  }
  // What ended the way up (a length that does not fit) need not end the way between.
  std::vector<Crossing> crossings;
  std::vector<Narrowing> found = changes(range, trials);
  goes_on = true;
  for (Narrowing& change : found) {
    if (goes_on) goes_on = change.run(compare, trials);
    crossings.push_back(change.crossing());
  }
  std::sort(trials.begin(), trials.end(),
            [](const Trial& a, const Trial& b) { return a.length < b.length; });
  return judged(std::move(trials), std::move(crossings));
}

}  // namespace attnbench::tasks::crossover
