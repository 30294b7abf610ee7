// Comparing: two results that were measured apart (which describes, and gates nothing), and two
// sides that one run measured in turns (which decides).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace attnbench::compare {

using Json = nlohmann::json;

/// What the measurements allow to say of a cell. Of results measured apart, `slow` and `fast` need
/// at least 3 rounds in each, one machine, and intervals that lie more than the margin apart,
/// calibrated as well as not; paired.hpp says what they need in one run. No verdict but `unclear`
/// comes from rounds or cells that were disturbed, nor from the times of cells that did not end
/// well.
enum class Verdict { same, slow, fast, unclear, added, gone };

/// "SAME", "SLOW", "FAST", "UNCLEAR", "NEW", "GONE".
const char* to_string(Verdict verdict);

/// Of an interval for new / base: slow where all of it is above `reach` (1 + margin), fast where
/// all is below 1 / reach, same where all is between, else unclear.
Verdict verdict_of(double low, double high, double reach);

/// A median with the bounds over its rounds, in seconds.
struct Spread {
  double median = 0;
  double low = 0;
  double high = 0;
};

/// The same code against itself, in the same rounds: what the machine alone does to a ratio.
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
  Verdict verdict = Verdict::unclear;
  std::string reason;  ///< why no more can be said; a status where a side has no time
  std::optional<Spread> base;
  std::optional<Spread> changed;
  /// New over base: of the medians or, in turns, the median over rounds; 0 where a side has no
  /// time, or none that was undisturbed.
  double ratio = 0;
  double ratio_low = 0;  ///< the least and the greatest that both intervals, or the rounds, allow
  double ratio_high = 0;
  std::optional<Control> control;
  double calibrated_ratio = 0;  ///< of the times in units of each round's calibration probe
  bool disjoint = false;        ///< the intervals over rounds have nothing in common
  std::size_t base_rounds = 0;  ///< that count
  std::size_t changed_rounds = 0;
  std::size_t rounds = 0;    ///< measured; of both sides together where they were measured apart
  std::size_t left_out = 0;  ///< of those, in which other programs had the CPU of a side
};

/// How two sides were measured in turns.
struct Turns {
  std::string base;  ///< their labels
  std::string changed;
  double margin = 0;
  double confidence = 0;  ///< of each interval, the number of pairs allowed for
};

struct Comparison {
  std::optional<Turns> turns;            ///< nothing where they were measured apart
  std::vector<Pair> pairs;               ///< in the base's order, then what is new
  std::vector<std::string> differences;  ///< of machine, flags, seed, binary, …: sentences
  bool same_machine = false;
  std::size_t timed = 0;          ///< pairs with a time on both sides
  std::size_t disjoint = 0;       ///< of those, with disjoint intervals
  double disjoint_by_chance = 0;  ///< the share of `timed` to expect if nothing had changed
};

/// Matches the cells of two result.json values by id. `margin` is the relative change below which
/// disjoint intervals are not called SLOW or FAST. Rounds that were disturbed are left out.
Comparison compare(const Json& base, const Json& changed, double margin = 0.03);

/// How often the ranges of n and m draws from one distribution are disjoint: 2 n! m! / (n + m)!.
double disjoint_by_chance(std::size_t n, std::size_t m);

Json to_json(const Comparison& comparison);

/// A forest: per pair the ratio and its interval as a bar around 1; `width` columns.
std::string to_text(const Comparison& comparison, std::size_t width, bool utf8);

}  // namespace attnbench::compare
