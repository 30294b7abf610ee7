// Estimates of time before anything was measured, from predicted costs and an assumed machine.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace attnbench::suite {

/// What an estimate takes for granted, and says aloud: about four CPU cores with wide vectors.
struct AssumedMachine {
  double flops_per_second = 1e11;
  double bytes_per_second = 1e10;
};

/// One call of the timed body: the slower of arithmetic and traffic. `cost` as a forecast has it.
double estimated_call_seconds(const nlohmann::json& cost, const AssumedMachine& machine = {});

/// A cell with all its rounds: starting a process, warming up, sampling until the interval can be
/// narrow or the limit is hit, and the first round's check and memory pass.
double estimated_cell_seconds(double call_seconds, const nlohmann::json& measure);

}  // namespace attnbench::suite
