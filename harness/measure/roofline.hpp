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

/// Above which share of its floor a time cannot be believed.
constexpr double greatest_share = 1.1;

/// How a piece of work was timed.
struct Timed {
  double seconds = 0;
  double calibration_seconds = 0;  ///< beside the samples; 0 = not known
};

/// Why `timed` cannot be the time of all of the work, as a sentence with the numbers; nothing where
/// it can. Held against a floor that is no higher than what could be true:
/// - traffic: each level of memory serves as much as it holds, so that what is a little larger than
///   a cache may still be found in it for the most part; what neighbours share (the last cache and
///   memory behind it) may be half as fast again as it was while they were at work;
/// - products: on a CPU at the rate of multiply-adds in float32 at least, and in narrow dtypes at
/// 16
///   times that (matrix units, which a library that does not know them leaves alone); on a GPU at
///   the rate of its fastest dtype;
/// - exponentials of narrow dtypes at twice the rate: fewer digits are needed.
/// Floors below 5 microseconds say nothing: clocks and caches decide there. Nor does anything where
/// the ceilings are those of a slower moment: they carry their own `calibration_seconds`, and where
/// that is not known or more than a tenth above the timed one, no time is called impossible.
std::optional<std::string> impossible(const Work& work, const Json& ceilings, const Timed& timed);

}  // namespace attnbench::measure
