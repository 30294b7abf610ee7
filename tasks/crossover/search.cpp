#include "tasks/crossover/search.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "attention/torch/torch.hpp"
#include "tasks/settings.hpp"

namespace attnbench::tasks::crossover {
namespace {

constexpr Names<Faster, 4> faster_names = {{"exact", Faster::exact},
                                           {"mechanism", Faster::mechanism},
                                           {"undecided", Faster::undecided},
                                           {"untried", Faster::untried}};

/// A ratio that falls by a smaller power of the length does not approach 1.
constexpr double least_gain = 0.1;
/// The number of longest lengths that determine the trend.
constexpr std::size_t trend_lengths = 3;

bool is_decided(const LengthTrial& trial) {
  return trial.faster == Faster::exact || trial.faster == Faster::mechanism;
}

/// The exponent with which the ratio falls with the length, over the longest; 0 without two.
double gain_of(const std::vector<LengthTrial>& decided) {
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

/// The geometric mean of two lengths; nothing where there is no whole number in between.
std::optional<std::int64_t> between(std::int64_t low, std::int64_t high) {
  if (high - low < 2) return std::nullopt;
  const double middle = std::sqrt(static_cast<double>(low) * static_cast<double>(high));
  return std::clamp<std::int64_t>(std::llround(middle), low + 1, high - 1);
}

double width(std::int64_t low, std::int64_t high) {
  return static_cast<double>(high) / static_cast<double>(low);
}

/// Narrows one crossing. Undecided lengths form a zone in its middle, whose two edges are then
/// searched separately.
class Narrowing {
 public:
  Narrowing(const Range& range, SideChange crossing) : range_(range), crossing_(crossing) {}

  /// Appends to `trials`. False where the search must end.
  bool run(const Compare& compare, std::vector<LengthTrial>& trials) {
    while (const auto next = next_length()) {
      const std::optional<LengthTrial> trial = compare(*next);
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

  const SideChange& crossing() const { return crossing_; }

 private:
  std::optional<std::int64_t> next_length() const {
    const std::int64_t first_end = zone_low_.value_or(crossing_.high);
    const std::int64_t second_begin = zone_high_.value_or(crossing_.high);
    const double first = width(crossing_.low, first_end);
    const double second = width(second_begin, crossing_.high);
    const bool broadcast = first >= second;
    if (std::max(first, second) <= 1 + range_.resolution) return std::nullopt;
    return broadcast ? between(crossing_.low, first_end) : between(second_begin, crossing_.high);
  }

  void take(const LengthTrial& trial) {
    if (trial.faster == Faster::undecided) {
      undecided_at(trial.length);
      return;
    }
    (trial.faster == crossing_.from ? crossing_.low : crossing_.high) = trial.length;
    // A decision inside the zone overrides it.
    if (!zone_low_ || (crossing_.low < *zone_low_ && *zone_high_ < crossing_.high)) return;
    zone_low_.reset();
    zone_high_.reset();
  }

  const Range range_;
  SideChange crossing_;
  std::optional<std::int64_t> zone_low_;
  std::optional<std::int64_t> zone_high_;
};

std::vector<Narrowing> changes(const Range& range, const std::vector<LengthTrial>& coarse) {
  std::vector<Narrowing> found;
  const LengthTrial* before = nullptr;
  for (const LengthTrial& trial : coarse) {
    if (!is_decided(trial)) continue;
    if (before != nullptr && before->faster != trial.faster) {
      Narrowing change(range, {before->length, trial.length, before->faster});
      for (const LengthTrial& other : coarse) {
        const bool inside = before->length < other.length && other.length < trial.length;
        if (inside && other.faster == Faster::undecided) change.undecided_at(other.length);
      }
      found.push_back(change);
    }
    before = &trial;
  }
  return found;
}

/// The verdict over trials, in order of length, and refined crossings.
SearchResult result_of(std::vector<LengthTrial> trials, std::vector<SideChange> crossings) {
  SearchResult found;
  found.trials = std::move(trials);
  found.crossings = std::move(crossings);
  std::vector<LengthTrial> decided;
  std::copy_if(found.trials.begin(), found.trials.end(), std::back_inserter(decided), is_decided);
  if (decided.empty()) {
    found.verdict = "undecided";
  } else if (found.crossings.size() > 1) {
    found.verdict = "several";
  } else if (found.crossings.size() == 1) {
    const SideChange& only = found.crossings.front();
    found.verdict = only.from == Faster::exact ? "found" : "reverse";
    found.low = only.low;
    found.high = only.high;
  } else if (decided.front().faster == Faster::mechanism) {
    found.verdict = "below";
    found.high = decided.front().length;
  } else {
    // One length shows no trend.
    found.verdict = decided.size() > 1 && gain_of(decided) < least_gain ? "none" : "above";
    found.low = decided.back().length;
  }
  return found;
}

struct Fit {
  std::vector<double> coefficients;  ///< of x^0, x^1, …
  double r2 = 0;
};

/// Least squares of a polynomial.
Fit fit(const std::vector<double>& x, const std::vector<double>& y, std::int64_t degree) {
  const auto rows = static_cast<std::int64_t>(x.size());
  at::Tensor powers = at::ones({rows, degree + 1}, at::kDouble);
  at::Tensor values = at::empty({rows, 1}, at::kDouble);
  double mean = 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const auto at_i = static_cast<std::size_t>(i);
    for (std::int64_t power = 1; power <= degree; ++power) {
      powers[i][power] = std::pow(x[at_i], static_cast<double>(power));
    }
    values[i][0] = y[at_i];
    mean += y[at_i] / static_cast<double>(rows);
  }
  const at::Tensor solution = std::get<0>(at::linalg_lstsq(powers, values));
  Fit result;
  for (std::int64_t power = 0; power <= degree; ++power) {
    result.coefficients.push_back(solution[power][0].item<double>());
  }
  double residual = 0;
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double fitted = 0;
    for (std::size_t power = result.coefficients.size(); power-- > 0;) {
      fitted = fitted * x[i] + result.coefficients[power];
    }
    residual += (y[i] - fitted) * (y[i] - fitted);
    total += (y[i] - mean) * (y[i] - mean);
  }
  result.r2 = total > 0 ? 1 - residual / total : 1;
  return result;
}

}  // namespace

const char* to_string(Faster faster) { return name_of(faster_names, faster); }

std::vector<std::int64_t> coarse_lengths(std::int64_t minimum, std::int64_t maximum) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t length = minimum; length < maximum; length *= 2) lengths.push_back(length);
  lengths.push_back(maximum);
  return lengths;
}

SearchResult search(const Range& range, const Compare& compare) {
  std::vector<LengthTrial> trials;
  bool goes_on = true;
  for (const std::int64_t length : coarse_lengths(range.minimum, range.maximum)) {
    const std::optional<LengthTrial> trial = compare(length);
    goes_on = trial.has_value();
    if (!goes_on) break;
    trials.push_back(*trial);
  }
  // A length that did not fit ends the coarse search, but not the search between shorter ones.
  std::vector<SideChange> crossings;
  std::vector<Narrowing> found = changes(range, trials);
  goes_on = true;
  for (Narrowing& change : found) {
    if (goes_on) goes_on = change.run(compare, trials);
    crossings.push_back(change.crossing());
  }
  std::sort(trials.begin(), trials.end(),
            [](const LengthTrial& a, const LengthTrial& b) { return a.length < b.length; });
  return result_of(std::move(trials), std::move(crossings));
}

std::optional<EfficiencyFit> efficiency_length(const std::vector<double>& lengths,
                                               const std::vector<double>& exact,
                                               const std::vector<double>& mechanism) {
  constexpr std::size_t least_lengths = 4;
  constexpr double least_share = 0.01;
  if (lengths.size() < least_lengths) return std::nullopt;
  // Lengths relative to the longest: squares of lengths would span twelve decades.
  const double unit = lengths.back();
  std::vector<double> x;
  for (const double length : lengths) x.push_back(length / unit);
  const Fit parabola = fit(x, exact, 2);
  const Fit line = fit({x.begin() + 1, x.end()}, {mechanism.begin() + 1, mechanism.end()}, 1);
  const double a = parabola.coefficients[2];
  const double b = parabola.coefficients[1] - line.coefficients[1];
  const double c = parabola.coefficients[0] - line.coefficients[0];
  const double discriminant = b * b - 4 * a * c;
  if (!(a > least_share * exact.back()) || !(discriminant >= 0)) return std::nullopt;
  const double root = (-b + std::sqrt(discriminant)) / (2 * a);
  if (!(root > 0)) return std::nullopt;
  return EfficiencyFit{root * unit, parabola.r2, line.r2};
}

}  // namespace attnbench::tasks::crossover
