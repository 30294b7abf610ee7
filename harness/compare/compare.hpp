// Comparing two results that were measured apart: it describes, and gates nothing.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace attnbench::compare {

using Json = nlohmann::json;

/// What two results measured apart allow to say of a cell. `slow` and `fast` need at least 3 rounds
/// in each, one machine, and intervals that lie more than the margin apart, calibrated as well as
/// not.
enum class Verdict { same, slow, fast, unclear, added, gone };

/// "SAME", "SLOW", "FAST", "UNCLEAR", "NEW", "GONE".
const char* to_string(Verdict verdict);

/// A median with the bounds over its rounds, in seconds.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// One timing of one cell in both results.
struct Pair {
  std::string id;
  std::string name;  ///< label and settings, for people
  std::string what;  ///< forward, step, …
  Verdict verdict = Verdict::unclear;
  std::string reason;  ///< why no more can be said; a status where a side has no time
  std::optional<Spread> base;
  std::optional<Spread> changed;
  double ratio = 0;      ///< of the medians, new over base; 0 where a side has none
  double ratio_low = 0;  ///< the least and the greatest that both intervals allow
  double ratio_high = 0;
  double calibrated_ratio = 0;  ///< of the times in units of each round's calibration probe
  bool disjoint = false;        ///< the intervals over rounds have nothing in common
  std::size_t base_rounds = 0;
  std::size_t changed_rounds = 0;
};

struct Comparison {
  std::vector<Pair> pairs;               ///< in the base's order, then what is new
  std::vector<std::string> differences;  ///< of machine, flags, seed, binary, …: sentences
  bool same_machine = false;
  std::size_t timed = 0;          ///< pairs with a time on both sides
  std::size_t disjoint = 0;       ///< of those, with disjoint intervals
  double disjoint_by_chance = 0;  ///< the share of `timed` to expect if nothing had changed
};

/// Matches the cells of two result.json values by id. `margin` is the relative change below which
/// disjoint intervals are not called SLOW or FAST.
Comparison compare(const Json& base, const Json& changed, double margin = 0.03);

/// How often the ranges of n and m draws from one distribution are disjoint: 2 n! m! / (n + m)!.
double disjoint_by_chance(std::size_t n, std::size_t m);

Json to_json(const Comparison& comparison);

/// A forest: per pair the ratio and its interval as a bar around 1; `width` columns.
std::string to_text(const Comparison& comparison, std::size_t width, bool utf8);

}  // namespace attnbench::compare
