// Roofline: the least time that a piece of work can take on a machine whose ceilings are known.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "harness/measure/machine.hpp"

namespace attnbench::measure {

/// What one timed body does, for the whole problem.
struct Work {
  double flops = 0;  ///< of the model: what no implementation can avoid
  double bytes = 0;  ///< inputs read once, outputs written once
  double exponentials = 0;
  std::string dtype = "float32";
};

/// The floor and the terms it is made of, in seconds.
struct Roofline {
  double floor_seconds = 0;
  std::string bound;  ///< the term that binds: "compute", "memory" or "exponentials"
  double compute_seconds = 0;
  double memory_seconds = 0;
  double exponential_seconds = 0;
};

/// `ceilings` are those of one device, as in result.json. On a CPU exponentials and FMAs share
/// ports, so their times add, and only traffic hides behind them: floor = max(compute +
/// exponentials, memory). Where `exponential_units` is "own", as on a GPU, each hides behind the
/// others: floor = max(compute, exponentials, memory). Traffic is held against the fastest level of
/// memory that holds all of it, since a repeated body finds its data there. Nothing where a needed
/// ceiling is not known.
std::optional<Roofline> roofline(const Work& work, const Json& ceilings);

}  // namespace attnbench::measure
