#include "reports/trend/changes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>

#include "core/statistics.hpp"

namespace attnbench::reports::trend {
namespace {

constexpr int shuffles = 999;
constexpr double max_by_chance = 0.01;
constexpr double z_95 = 1.959964;

/// Ranks from 1; equal values share the mean of theirs.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i;
    while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
    for (std::size_t k = i; k < end; ++k) {
      ranks[order[k]] = (static_cast<double>(i + end) + 1) / 2;
    }
    i = end;
  }
  return ranks;
}

struct Split {
  std::size_t at = 0;
  double score = 0;  ///< of the rank sum, in standard deviations
};

/// Where the rank sums of both sides lie furthest from what they would be without a change.
Split best_split(const std::vector<double>& ranks) {
  Split best;
  const auto n = static_cast<double>(ranks.size());
  double sum = 0;
  for (std::size_t at = 1; at + least_side <= ranks.size(); ++at) {
    sum += ranks[at - 1];
    if (at < least_side) continue;
    const auto left = static_cast<double>(at);
    const double deviation = std::sqrt(left * (n - left) * (n + 1) / 12);
    const double score = std::abs(sum - left * (n + 1) / 2) / deviation;
    if (score > best.score) best = {at, score};
  }
  return best;
}

/// SplitMix64: the same shuffles on every machine, which std::shuffle does not promise.
class Dice {
 public:
  std::size_t below(std::size_t bound) {
    state_ += 0x9e3779b97f4a7c15U;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
    mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
    return static_cast<std::size_t>((mixed ^ (mixed >> 31U)) % bound);
  }

 private:
  std::uint64_t state_ = 20261123;
};

bool is_by_chance(std::vector<double> ranks, double score) {
  Dice dice;
  int as_far = 1;  // the series itself is one of the orders
  for (int shuffle = 0; shuffle < shuffles; ++shuffle) {
    for (std::size_t i = ranks.size() - 1; i > 0; --i)
      std::swap(ranks[i], ranks[dice.below(i + 1)]);
    if (best_split(ranks).score >= score) ++as_far;
  }
  return as_far > max_by_chance * (shuffles + 1);
}

using Iterator = std::vector<double>::const_iterator;

Change change_between(Iterator begin, Iterator middle, Iterator end) {
  std::vector<double> ratios;
  for (Iterator before = begin; before != middle; ++before) {
    for (Iterator after = middle; after != end; ++after) ratios.push_back(*after / *before);
  }
  std::sort(ratios.begin(), ratios.end());
  const auto n = static_cast<double>(middle - begin);
  const auto m = static_cast<double>(end - middle);
  // One less than the normal approximation says: then it covers 95 % from five values a side on.
  const double reach = n * m / 2 - z_95 * std::sqrt(n * m * (n + m + 1) / 12);
  const auto out = static_cast<std::size_t>(std::max(0.0, std::floor(reach) - 1));
  Change change;
  change.ratio = median(ratios);
  change.low = ratios[out];
  change.high = ratios[ratios.size() - 1 - out];
  return change;
}

void split(const std::vector<double>& values, std::size_t begin, std::size_t end,
           std::vector<std::size_t>& points) {
  if (end - begin < 2 * least_side) return;
  const auto first = values.begin();
  const std::vector<double> part(first + static_cast<std::ptrdiff_t>(begin),
                                 first + static_cast<std::ptrdiff_t>(end));
  const std::vector<double> ranks = ranks_of(part);
  const Split best = best_split(ranks);
  if (best.at == 0 || is_by_chance(ranks, best.score)) return;
  split(values, begin, begin + best.at, points);
  points.push_back(begin + best.at);
  split(values, begin + best.at, end, points);
}

}  // namespace

std::vector<Change> changes_of(const std::vector<double>& values) {
  std::vector<std::size_t> points;
  split(values, 0, values.size(), points);
  std::vector<Change> changes;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const auto place = [&](std::size_t at) {
      return values.begin() + static_cast<std::ptrdiff_t>(at);
    };
    const std::size_t begin = i == 0 ? 0 : points[i - 1];
    const std::size_t end = i + 1 == points.size() ? values.size() : points[i + 1];
    Change change = change_between(place(begin), place(points[i]), place(end));
    change.at = points[i];
    if (change.low <= 1 && change.high >= 1) continue;
    changes.push_back(change);
  }
  return changes;
}

}  // namespace attnbench::reports::trend
