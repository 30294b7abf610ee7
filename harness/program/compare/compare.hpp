// Comparisons: of two results measured apart, which only describe, and of two sides that one run
// measured in turns, which decide.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/statistics.hpp"
#include "harness/program/compare/gate.hpp"
#include "harness/program/compare/provenance.hpp"
#include "reports/tables/layout.hpp"

namespace attnbench::compare {

/// The verdict on a cell. For results measured apart, `slow` and `fast` need at least 3 rounds in
/// each, one machine, and intervals more than the margin apart, with and without calibration; see
/// paired.hpp for one run. Disturbed rounds and cells, and cells without status ok, are `unclear`.
enum class SpeedVerdict { same, slow, fast, unclear, added, gone };

/// The verdict's word: "SAME", "SLOW", "FAST", "UNCLEAR", "NEW", "GONE".
const char* to_string(SpeedVerdict verdict);

/// The verdict that follows from an interval of new / base: slow above `reach` (1 + margin), fast
/// below 1 / reach, same between, else unclear.
SpeedVerdict verdict_of(double low, double high, double reach);

/// The base against itself in the same rounds: how the machine alone changes a ratio.
struct Control {
  double ratio = 1;
  double low = 0;
  double high = 0;
};

/// One timing of one cell on both sides.
struct Pair {
  std::string id;
  std::string name;  ///< label and settings, for people
  std::string what;  ///< forward, step, …
  SpeedVerdict verdict = SpeedVerdict::unclear;
  std::string reason;          ///< of `unclear`; a status where a side has no time
  std::optional<Spread> base;  ///< medians with their bounds over rounds, in seconds
  std::optional<Spread> changed;
  /// The ratio new over base: of the medians or, in turns, the median over rounds; 0 where a side
  /// has no undisturbed time.
  double ratio = 0;
  double ratio_low = 0;  ///< bounds from both intervals, or over rounds
  double ratio_high = 0;
  std::optional<Control> control;
  double calibrated_ratio = 0;  ///< ratio of the times in units of each round's calibration probe
  bool disjoint = false;        ///< the intervals over rounds do not overlap
  std::size_t base_rounds = 0;  ///< rounds that count
  std::size_t changed_rounds = 0;
  std::size_t rounds = 0;    ///< measured; the sum of both sides where measured apart
  std::size_t left_out = 0;  ///< rounds disturbed by other programs
  /// The verdict is that of all rounds by their least samples, those left out among them: the base
  /// against itself did nothing of the kind.
  bool beside_others = false;
  /// The ratio over further rounds in fresh processes, where the first were `slow`.
  std::optional<Control> confirmation;
  int rounds_wanted = 0;        ///< rounds wanted in all, since it is unclear; 0 = no more
  bool confirm_wanted = false;  ///< rounds of the confirmation are missing
};

/// How two sides were measured in turns.
struct Turns {
  std::string base;  ///< their labels
  std::string changed;
  double margin = 0;
  double confidence = 0;  ///< of each interval, Bonferroni-corrected over pairs and looks
  int threads = 0;        ///< of a cell; 0 = unknown
  Gate gate;
};

struct Comparison {
  std::optional<Turns> turns;            ///< nothing where measured apart
  std::vector<Pair> pairs;               ///< in the base's order, then new ones
  std::string basis;                     ///< a sentence: which machine, which rounds
  std::vector<std::string> differences;  ///< of machine, flags, seed, binary, …: sentences
  bool same_machine = false;
  std::size_t timed = 0;          ///< pairs with a time on both sides
  std::size_t disjoint = 0;       ///< pairs with disjoint intervals
  double disjoint_by_chance = 0;  ///< expected share of `timed` without any change
};

/// Matches the cells of two results by id. `margin` is the relative change below which
/// disjoint intervals are not called SLOW or FAST. Disturbed rounds are left out.
Comparison compare(const result::Result& base, const result::Result& changed, double margin = 0.03);

/// Whether any cell is in both.
bool anything_in_common(const Comparison& comparison);

/// How often the ranges of n and m draws from one distribution are disjoint: 2 n! m! / (n + m)!.
double disjoint_by_chance(std::size_t n, std::size_t m);

/// The place " length=1024 pass=forward": the value on the axis and the panel's facet, each after a
/// space.
std::string place_name(const reports::Panel& panel, const reports::Placed& placed);

Json to_json(const Comparison& comparison);
/// One of its pairs, as ab.json has it.
Json to_json(const Pair& pair);

/// The ratio with its interval: "1.100 [1.079, 1.131]".
std::string ratio_text(double ratio, double low, double high);
/// The number of pairs with each verdict: "1 SLOW, 2 UNCLEAR".
std::string verdict_counts(const Comparison& comparison);

/// A forest plot: for each pair the ratio and its interval as a bar around 1; `width` columns.
std::string to_text(const Comparison& comparison, std::size_t width, bool utf8);

}  // namespace attnbench::compare
