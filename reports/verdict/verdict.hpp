// The verdict of a result: for each task what is fastest, smallest and most accurate, and from
// which length on a mechanism is faster than exact attention.
//
// It is computed from the small structs of the first half, which reports/verdict/input.hpp fills
// from a result. The table that ranks is made of it in reports/verdict/ranking.hpp.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result/record.hpp"
#include "core/statistics.hpp"
#include "reports/tables/missing.hpp"

namespace attnbench::reports::verdict {

/// Seconds over rounds.
using Time = Estimate;

struct Candidate {
  std::string id;     ///< of its cell
  std::string label;  ///< its line in tables and figures
  std::string mechanism;
  std::string implementation;  ///< "latte/fused, 32 latents per head"
  bool exact = false;          ///< exact attention, whatever computes it
  std::string kind;            ///< what cells must share to be compared: pattern, scope, dtype, …
  std::optional<double> x;     ///< its place on the axis; absent where it has no such option
  Status status = Status::ok;
  bool unchecked = false;  ///< an error that is one of the check alone
  std::optional<Time> time;
  std::optional<double> least_seconds;  ///< the least sample, of what was disturbed
  bool over_rounds = true;  ///< false where one process alone was timed, which ranks nothing
  std::optional<double> workspace_bytes;
  std::optional<double> state_bytes;
  std::string crossover;  ///< what a search for a crossover found, in words; else empty
};

/// How the trainings of a question are judged: by accuracy, or by bits per byte.
struct QualityMeasure {
  std::string words = "accuracy";
  std::string plural = "accuracies";
  std::string best = "most accurate";
  bool less_is_better = false;
};

/// The trainings of one label at one place of the axis, at the learning rate that validation chose,
/// in what they are judged by.
struct Accuracy {
  std::string label;
  std::optional<double> x;
  double mean = 0;  ///< over seeds
  double low = 0;   ///< the least of a seed
  double high = 0;
  std::size_t seeds = 1;
  std::optional<double> state_bytes;
};

/// Cells that may be compared with each other: a panel of the result.
struct PanelQuestion {
  std::string task;        ///< "forward", or "kernel, batch=4" where a task has several panels
  std::string what;        ///< what is timed: "forward", "step", …
  std::string axis;        ///< "length"; empty where the cells share none
  std::string place;       ///< the axis in words: "length", "a context of length"
  std::string conditions;  ///< "B=1, H=4, D=64, causal, scope mix, float32, cpu"
  std::vector<Candidate> cells;
  std::vector<Accuracy> accuracies;
  std::vector<Missing> untrained;  ///< what should have an accuracy
  QualityMeasure measure = {};
};

struct VerdictInput {
  std::string machine;  ///< "Intel Xeon, 2 threads"
  std::vector<PanelQuestion> questions;
};

/// What is fastest at one place of the axis, of the cells that may be compared with exact attention
/// (with the first cell where there is none). Nothing is where something missing may be faster.
struct Fastest {
  std::optional<double> x;
  MissingAt missing;                ///< what may be faster, and what is slower already before it
  std::vector<std::string> labels;  ///< by median; more than one where intervals overlap
  std::string implementation;       ///< of the first
  Time time;                        ///< of the first
  std::string kind;                 ///< of the cells compared
  /// Of the fastest exact attention there; absent without one, and where something exact that is
  /// missing may be faster.
  std::optional<Time> exact;
  std::string exact_implementation;
};

enum class CrossingKind {
  found,      ///< slower at shorter lengths, faster from `length` on
  below,      ///< faster at every measured length
  none,       ///< not faster at any
  reverse,    ///< faster at short lengths alone
  several,    ///< the order changes more than once
  undecided,  ///< the intervals overlap at the longest length
  missing,    ///< fewer than two lengths have both times
};

/// Lengths at which a crossover has no time to go by.
struct Gap {
  std::vector<Missing> missing;
  std::vector<double> lengths;  ///< ascending
};

/// The length from which on a mechanism is faster than the fastest exact attention.
struct CrossingStatement {
  std::string label;
  std::string implementation;  ///< its own, at the end of the interval (or at the longest length)
  std::string against;         ///< the exact one's, there
  CrossingKind crossing = CrossingKind::undecided;
  double length = 0;          ///< where the medians meet, of `found`
  std::optional<double> low;  ///< before it the mechanism is slower; absent where that is not known
  double high = 0;            ///< from it on the mechanism is faster
  double shortest = 0;        ///< measured
  double longest = 0;
  bool within_gap = false;  ///< of `found`: the ends of the interval are the lengths beside a gap
  std::vector<Gap> gaps;    ///< of lengths that were asked for
};

struct Amount {
  std::string label;
  double bytes = 0;
};

struct Answer {
  std::string task;
  std::string what;
  std::string axis;
  std::string place;
  std::string conditions;
  std::vector<Fastest> fastest;  ///< ascending; none where fewer than two cells may be ranked
  std::vector<CrossingStatement> crossings;                   ///< for the axis "length"
  std::vector<std::pair<std::string, std::string>> searched;  ///< label, what a search found
  std::optional<double> bytes_at;                             ///< where on the axis both lists are
  std::vector<Amount> workspaces;                             ///< ascending
  std::vector<Amount> states;                                 ///< ascending
  std::vector<Accuracy> accuracies;                           ///< best first
  std::vector<Missing> untrained;                             ///< of which one may be better
  QualityMeasure measure;
  std::vector<std::string> max_accurate;  ///< more than one where seeds overlap; none of one seed
  bool one_process_each = false;          ///< times that rank nothing
};

/// Cells that are not ok, by status.
struct Exception {
  Status status;
  std::size_t count = 0;
  std::vector<std::string> labels;  ///< "softmax (decode)", without duplicates
};

/// A line of the table that ranks. What was not measured, or not of this label, is absent.
struct RankedRow {
  std::string label;
  std::string implementation;
  bool exact = false;
  std::string mechanism;
  std::vector<std::pair<double, double>> along;  ///< the axis, and seconds that rank; ascending
  std::string faster_from;      ///< the crossover in short: "1000 (880 to 1300)", "not up to 2048"
  std::optional<Time> time;     ///< at the table's place
  std::optional<Status> ended;  ///< of what has no time there; ok of what one process timed
  std::optional<double> least_seconds;  ///< the least sample, of what was disturbed
  bool fastest = false;                 ///< or not to be told from the fastest
  std::optional<Estimate> speedup;      ///< over the fastest exact attention, there
  std::optional<double> workspace_bytes;
  std::optional<double> state_bytes;
  std::optional<Time> step;
  std::optional<double> least_step_seconds;  ///< likewise
  bool fastest_step = false;
  std::optional<Accuracy> quality;
  bool best_quality = false;
};

/// The table that ranks: a line for each label of a question, best first; steps and qualities of
/// other questions of the result stand beside the first table's times.
struct Ranking {
  std::string headline;  ///< the answer in one sentence without machine; empty without one
  std::string task;      ///< of the question that it answers
  std::string what;      ///< is timed, as in the question; empty where nothing is
  std::string conditions;
  std::string timed;  ///< "forward pass"; empty where nothing was
  std::string place;  ///< what `at` counts: "length"
  std::string axis;
  std::optional<double> at;     ///< the greatest place at which two or more have a time
  std::string against;          ///< the exact attention that speed-ups are over
  std::string step_place;       ///< "a context of length 8192"
  std::string step_conditions;  ///< those of the steps that are not the times' own
  std::string quality_of;       ///< "mqar (T=64)", where another task's qualities are beside times
  QualityMeasure measure = {};
  bool by_quality = false;  ///< the rows' order, and what the headline says
  std::vector<RankedRow> rows;
};

struct Verdict {
  std::vector<Answer> answers;
  std::vector<Ranking> rankings;  ///< of answers that rank something, the result's own first
  std::vector<Exception> exceptions;
  std::string sentence;  ///< one to repeat, with machine, dtype and scope; may be empty
};

/// Whether a cell has a time that ranks: ok, and over rounds.
bool is_ranked(const Candidate& cell);

/// Ranks cells that are ok and timed over rounds; two whose intervals overlap are not told apart,
/// and nothing is said that a cell without such a time could overturn.
Verdict judge(const VerdictInput& input);

/// The crossover of two lines of times over lengths, both ascending and of the same lengths, at
/// least one. Ends of the interval lie where the ratio's bounds (of intervals: low/high, high/low)
/// reach 1 between two measured lengths; a ratio in between is taken as a power of the length.
/// Where one of `without`, lengths that were asked for and have no times, lies between the last
/// slower and the first faster length, these two are the ends.
CrossingStatement cross(const std::vector<double>& lengths, const std::vector<Time>& times,
                        const std::vector<Time>& exact, const std::vector<double>& without = {});

}  // namespace attnbench::reports::verdict
