// Roofline: the least time that a piece of work can take on a machine whose ceilings are known.
#pragma once

#include <optional>
#include <string>

#include "core/json_object.hpp"

namespace attnbench::measure {

/// The work of one timed body.
struct BodyWork {
  double flops = 0;  ///< of the model: no implementation can avoid them
  double bytes = 0;  ///< inputs read once, outputs written once
  double exponentials = 0;
  std::string dtype = "float32";
};

/// The floor and the terms it is made of, in seconds.
struct FloorTerms {
  double floor_seconds = 0;
  std::string bound;  ///< the term that binds: "compute", "memory" or "exponentials"
  double compute_seconds = 0;
  double memory_seconds = 0;
  double exponential_seconds = 0;
};

/// The floor of a piece of work under `ceilings`, those of one device in result.json. On a CPU
/// exponentials and FMAs share ports, so their times add: floor = max(compute + exponentials,
/// memory). Where `exponential_units` is "own", as on a GPU, they overlap: floor = max(compute,
/// exponentials, memory). Traffic is compared with the fastest level of memory that holds all of
/// it: a repeated body finds its data there. Nothing where a needed ceiling is unknown.
std::optional<FloorTerms> roofline(const BodyWork& work, const Values& ceilings);

/// A time whose floor is more than this share of it is impossible.
constexpr double max_share = 1.1;

/// How a piece of work was timed.
struct Timed {
  double seconds = 0;
  double calibration_seconds = 0;  ///< measured beside the samples; 0 = unknown
};

/// Why `timed` is too short for the work, as a sentence with numbers; nothing where it is possible.
/// The floor it is compared with is a lower bound:
/// - traffic: each level of memory serves as much as it holds, since most of what is a little
///   larger than a cache may still be in it; shared levels (the last cache and memory) may be 1.5
///   times as fast as measured, when neighbours were busy;
/// - products: on a CPU at least at the float32 rate of multiply-adds, in narrow dtypes at 16 times
///   that (matrix units, which not every library uses); on a GPU at the rate of its fastest dtype;
/// - exponentials of narrow dtypes at twice the rate: they need fewer digits.
/// Floors below 5 microseconds are ignored: clocks and caches dominate. So are ceilings measured at
/// a slower moment: their `calibration_seconds` is unknown or more than a tenth above that of
/// `timed`. A time is possible, too, where ceilings `headroom` times as high make it so.
std::optional<std::string> impossible(const BodyWork& work, const Values& ceilings,
                                      const Timed& timed, double headroom = 1);

}  // namespace attnbench::measure
