// The verdicts of `attnbench ab`, which stand in ab.json beside the result of its run.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/json_object.hpp"

namespace attnbench::reports {

/// What ab.json says of one side of a pair.
struct SideTime {
  double median_seconds = 0;
};

/// The base against itself: how far the machine alone moves a ratio.
struct SelfRatio {
  double ratio_low = 0;
  double ratio_high = 0;
};

/// The verdict on one pair.
struct PairVerdict {
  std::string name;
  std::string timing;
  std::string verdict;
  std::string reason;
  std::optional<double> ratio;  ///< new over base, with its interval
  std::optional<double> ratio_low;
  std::optional<double> ratio_high;
  std::optional<SideTime> base;
  std::optional<SideTime> changed;
  std::optional<SelfRatio> control;
  std::optional<int> rounds;
  int rounds_left_out = 0;  ///< disturbed by other programs
};

void from_json(const Json& json, PairVerdict& pair);

/// Labels of the sides, and what the intervals were judged by.
struct VerdictSides {
  std::string base;
  std::string changed;
  std::optional<double> margin;      ///< relative change below which nothing is SLOW or FAST
  std::optional<double> confidence;  ///< of each pair's interval
  std::string apart = {};            ///< of results measured apart: what of them was compared
};

struct Verdicts {
  VerdictSides turns;
  std::vector<PairVerdict> pairs;
};

/// The verdicts in ab.json beside `result` (a run's folder or a result.json); nothing where there
/// are none. What cannot be read, or lacks what the table shows, is nothing, too, and a message.
std::optional<Verdicts> verdicts_beside(const std::filesystem::path& result,
                                        std::vector<std::string>& messages);

/// The pair's name: "kernel length=256 forward".
std::string pair_name(const PairVerdict& pair);
/// The ratio with its interval: "0.500 [0.490, 0.510]"; empty without a ratio.
std::string ratio_words(const PairVerdict& pair);
/// The numbers of rounds: "12", "4, and 6 disturbed"; empty where they are not known.
std::string rounds_words(const PairVerdict& pair);

/// A line for each pair: verdict, ratio with its interval, both medians, rounds that count and that
/// other programs disturbed, and why no more can be said. Empty without verdicts.
std::string verdicts_html(const std::optional<Verdicts>& verdicts);
std::string verdicts_markdown(const std::optional<Verdicts>& verdicts);

}  // namespace attnbench::reports
