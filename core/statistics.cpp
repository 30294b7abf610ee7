#include "core/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>

namespace attnbench {
namespace {

/// P(exactly `count` heads in `n` tosses of a fair coin); in logarithms, since 2^-n underflows.
double fair_coin(std::size_t count, std::size_t n) {
  const double tosses = static_cast<double>(n);
  const double heads = static_cast<double>(count);
  return std::exp(std::lgamma(tosses + 1) - std::lgamma(heads + 1) -
                  std::lgamma(tosses - heads + 1) - tosses * std::log(2.0));
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) throw std::logic_error("the median of no values was asked for");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

std::optional<Interval> median_interval(std::vector<double> values, double confidence) {
  const std::size_t n = values.size();
  // [X_(k), X_(n+1-k)] misses the median only if fewer than k values lie on one side of it.
  // Counting 0-based: the greatest `rank` with 2 P(at most `rank` on a side) <= 1 - confidence.
  std::optional<std::size_t> rank;
  double tail = 0;
  for (std::size_t k = 0; 2 * k < n; ++k) {
    tail += fair_coin(k, n);
    if (2 * tail > 1 - confidence) break;
    rank = k;
  }
  if (!rank) return std::nullopt;
  std::sort(values.begin(), values.end());
  return Interval{values[*rank], values[n - 1 - *rank]};
}

Spread spread_of(const std::vector<double>& values) {
  const auto order = median_interval(values);
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return {median(values), order ? order->low : *low, order ? order->high : *high,
          order.has_value()};
}

double student_t(double freedom) {
  constexpr double normal = 1.959964;  // the point of the normal distribution
  const double scaled = normal * (8 * freedom + 3) / (8 * freedom + 1);
  return std::sqrt(freedom * std::expm1(scaled * scaled / freedom));
}

void Scatter::add(const std::vector<double>& values) {
  if (values.size() < 2 || *std::min_element(values.begin(), values.end()) <= 0) return;
  double sum = 0;
  for (const double value : values) sum += std::log(value);
  const double count = static_cast<double>(values.size());
  for (const double value : values) squares_ += std::pow(std::log(value) - sum / count, 2);
  freedom_ += count - 1;
}

double Scatter::factor(std::size_t count) const {
  if (freedom_ == 0) return std::numeric_limits<double>::infinity();
  const double error = std::sqrt(squares_ / freedom_ / static_cast<double>(count));
  return std::exp(student_t(freedom_) * error);
}

Spread Scatter::widened(Spread spread, std::size_t count) const {
  if (spread.order || freedom_ == 0) return spread;
  const double reach = factor(count);
  spread.low = std::min(spread.low, spread.median / reach);
  spread.high = std::max(spread.high, spread.median * reach);
  return spread;
}

double growth_exponent(const std::vector<double>& x, const std::vector<double>& y) {
  if (x.size() != y.size() || x.size() < 2) {
    throw std::logic_error("a growth exponent needs two lists of one length, of at least two");
  }
  const double n = static_cast<double>(x.size());
  double mean_x = 0;
  double mean_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] > 0) || !(y[i] > 0))
      throw std::logic_error("a growth exponent needs positive values");
    mean_x += std::log(x[i]) / n;
    mean_y += std::log(y[i]) / n;
  }
  double covariance = 0;
  double variance = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    covariance += (std::log(x[i]) - mean_x) * (std::log(y[i]) - mean_y);
    variance += (std::log(x[i]) - mean_x) * (std::log(x[i]) - mean_x);
  }
  if (!(variance > 0)) throw std::logic_error("a growth exponent needs at least two distinct x");
  return covariance / variance;
}

std::vector<std::size_t> least_of(const std::vector<Estimate>& estimates) {
  std::vector<std::size_t> order(estimates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return estimates[a].median < estimates[b].median;
  });
  if (order.empty()) return order;
  const double reach = estimates[order.front()].high;
  std::erase_if(order, [&](std::size_t i) { return estimates[i].low > reach; });
  return order;
}

}  // namespace attnbench
