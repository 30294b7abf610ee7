#include "harness/suite/estimate.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace attnbench::suite {

double estimated_call_seconds(const nlohmann::json& cost, const AssumedMachine& machine) {
  const double flops = cost.value("executed_flops", cost.value("model_flops", 0.0));
  return std::max(flops / machine.flops_per_second,
                  cost.value("minimal_bytes", 0.0) / machine.bytes_per_second);
}

double estimated_cell_seconds(double call_seconds, const nlohmann::json& measure) {
  constexpr double start_seconds = 0.05, warmup_seconds = 0.05, least_seconds = 0.05;
  constexpr double usual_samples = 22;  // a quiet machine meets a 1 % interval about here
  constexpr double first_round_calls = 3;
  const double rounds = measure.value("rounds", 5);
  const double samples = std::max(usual_samples, measure.value("min_samples", 10.0));
  const double limit = measure.value("max_seconds", 1.0);
  const double warming = std::max(warmup_seconds, 2 * call_seconds);
  const double sampling =
      std::min(std::max(samples * call_seconds, least_seconds), limit + call_seconds);
  return rounds * (start_seconds + warming + sampling) + first_round_calls * call_seconds;
}

}  // namespace attnbench::suite
