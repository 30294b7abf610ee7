#include "reports/tables/least.hpp"

#include <algorithm>

namespace attnbench::reports {

double least_seconds(const result::TimingRound& round) {
  const std::vector<double>& samples = round.samples_seconds;
  return samples.empty() ? round.median_seconds : *std::min_element(samples.begin(), samples.end());
}

double least_seconds(const result::Timing& timing) {
  if (timing.minimum_seconds) return *timing.minimum_seconds;
  double least = timing.low_seconds;
  for (const result::TimingRound& round : timing.rounds) {
    least = std::min(least, least_seconds(round));
  }
  return least;
}

std::string least_text(double least, text::Letters letters) {
  return "least " + text::human_seconds(least, letters);
}

std::string disturbed_text(double least, text::Letters letters) {
  return least_text(least, letters) + ", disturbed";
}

}  // namespace attnbench::reports
