#include "reports/figures/ticks.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace attnbench::reports {
namespace {

/// Some five even steps around `low` to `high`, of 1, 2 or 5 times a power of ten.
Json even_ticks(double low, double high) {
  const double rough = std::max(high - low, high * 0.02) / 3;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  const double step = power * (rough >= 5 * power ? 5 : rough >= 2 * power ? 2 : 1);
  Json ticks = Json::array();
  for (double i = std::floor(low / step) - 1; i <= std::ceil(high / step) + 1; ++i) {
    if (i > 0) ticks.push_back(i * step);
  }
  return ticks;
}

}  // namespace

bool grows_by_factors(const std::vector<double>& values) {
  if (values.size() < 2 || values.front() <= 0) return false;
  double least = values[1] / values[0];
  double most = least;
  for (std::size_t i = 2; i < values.size(); ++i) {
    least = std::min(least, values[i] / values[i - 1]);
    most = std::max(most, values[i] / values[i - 1]);
  }
  return values.back() >= 10 * values.front() || (least >= 1.4 && most / least <= 2.1);
}

Json decade_ticks(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double decades = std::log10(*high / *low);
  if (decades < 0.3) return even_ticks(*low, *high);
  const int first = static_cast<int>(std::floor(std::log10(*low))) - 1;
  const int last = static_cast<int>(std::ceil(std::log10(*high))) + 1;
  const std::vector<double> digits = decades < 1     ? std::vector<double>{1, 1.5, 2, 3, 5, 7}
                                     : decades < 2.5 ? std::vector<double>{1, 2, 5}
                                                     : std::vector<double>{1};
  Json ticks = Json::array();
  for (int power = first; power <= last; ++power) {
    for (const double digit : digits) ticks.push_back(digit * std::pow(10.0, power));
  }
  return ticks;
}

std::set<double> without_gaps(std::set<double> ticks) {
  if (ticks.empty() || *ticks.begin() <= 0) return ticks;
  for (auto at = ticks.begin(); std::next(at) != ticks.end();) {
    const auto next = std::next(at);
    if (*next > 4 * *at) {
      for (double between = 2 * *at; between < *next; between *= 2) ticks.insert(between);
    }
    at = next;
  }
  return ticks;
}

Json powers_of_two(const std::vector<double>& values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  Json ticks = Json::array();
  const int last = static_cast<int>(std::ceil(std::log2(*high)));
  for (int power = static_cast<int>(std::floor(std::log2(*low))); power <= last; ++power) {
    ticks.push_back(std::exp2(power));
  }
  return ticks;
}

}  // namespace attnbench::reports
