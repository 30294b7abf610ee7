#include "harness/program/compare/gate.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/failure.hpp"

namespace attnbench::compare {

ATTNBENCH_JSON_CODEC(Gate) {
  JSON_USUAL(relative_change, absolute_seconds, confidence, rounds, rounds_most, seconds_most,
             confirm);
  JSON_IGNORE_REST;
}

void validate(const Gate& gate) {
  const auto expect = [](bool fine, const std::string& what) {
    if (!fine) throw UsageFailure("the gate: " + what);
  };
  expect(gate.relative_change >= 0 && std::isfinite(gate.relative_change),
         "relative_change must be 0 or more");
  expect(gate.absolute_seconds >= 0 && std::isfinite(gate.absolute_seconds),
         "absolute_seconds must be 0 or more");
  expect(gate.confidence > 0 && gate.confidence < 1, "confidence must be between 0 and 1");
  expect(gate.rounds >= 1, "rounds must be 1 or more");
  expect(gate.seconds_most >= 0, "seconds_most must be 0 or more");
  expect(gate.rounds_most >= gate.rounds, "rounds_most is " + std::to_string(gate.rounds_most) +
                                              ", fewer than the " + std::to_string(gate.rounds) +
                                              " rounds before the first look");
  const int needed = rounds_needed(gate.confidence);
  expect(gate.confirm == 0 || gate.confirm >= needed,
         "confirm is " + std::to_string(gate.confirm) + ", and no interval has that confidence " +
             "with fewer than " + std::to_string(needed) + " rounds; 0 confirms nothing");
}

std::vector<int> looks(const Gate& gate) {
  std::vector<int> after;
  for (int rounds = gate.rounds; rounds < gate.rounds_most; rounds *= 2) {
    after.push_back(rounds);
    if (rounds > gate.rounds_most / 2) break;
  }
  after.push_back(gate.rounds_most);
  return after;
}

std::vector<int> stages(const Gate& gate) {
  if (gate.seconds_most == 0) return {gate.rounds};
  std::vector<int> after{1};
  for (const int third : {1, 2, 3}) {
    const auto rounds = static_cast<int>(std::int64_t{gate.rounds} * third / 3);
    if (rounds > after.back()) after.push_back(rounds);
  }
  return after;
}

double confidence_of_each(const Gate& gate, std::size_t pairs) {
  const std::size_t shares = std::max<std::size_t>(pairs, 1) * looks(gate).size();
  return 1 - (1 - gate.confidence) / static_cast<double>(shares);
}

int rounds_needed(double confidence) {
  return static_cast<int>(std::ceil(1 - std::log2(1 - confidence)));
}

double bar_of(const Gate& gate, double base_seconds) {
  if (!(base_seconds > 0)) return gate.relative_change;
  return std::max(gate.relative_change, gate.absolute_seconds / base_seconds);
}

}  // namespace attnbench::compare
