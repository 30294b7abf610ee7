#include "harness/measure/noise.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "harness/measure/machine.hpp"
#include "core/statistics.hpp"

namespace attnbench::measure {

Noise noise_self_test(int threads) {
  constexpr int pairs = 20;
  std::vector<double> halves[2];
  std::vector<double> all;
  for (int i = 0; i < 2 * pairs; ++i) {
    // A B B A: a drift of the clock falls on both halves alike.
    const int half = i % 4 == 1 || i % 4 == 2 ? 1 : 0;
    const double seconds = calibration_seconds(threads);
    halves[half].push_back(seconds);
    all.push_back(seconds);
  }
  std::sort(all.begin(), all.end());
  Noise noise;
  noise.median_seconds = median(all);
  noise.spread = (all[all.size() * 9 / 10] - all[all.size() / 10]) / noise.median_seconds;
  noise.difference = std::abs(median(halves[0]) / median(halves[1]) - 1);
  return noise;
}

}  // namespace attnbench::measure
