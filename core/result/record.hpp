// The record of a cell: statuses, which cells and rounds count for a verdict, and sections of it as
// values. What a record holds is said by core/schema/result.schema.json.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace attnbench::result {

using Json = nlohmann::json;

/// How a cell ended; every cell of a plan has one. A disturbed cell keeps its timing, but other
/// processes took the CPU from most of its rounds: it is never ranked and enters no verdict.
/// Trainings are not disturbed: what they learn is the same bit for bit.
enum class Status {
  ok,
  wrong,
  disturbed,
  unsupported,
  skipped,
  out_of_memory,
  timeout,
  crashed,
  error
};

const char* to_string(Status status);
std::optional<Status> status_from(const std::string& word);
/// All words, in the order above.
const std::vector<std::string>& status_words();

/// Whether a cell ended well and was not disturbed: what may be ranked, fitted and compared.
bool is_ok(const Json& cell);

/// Whether a cell ended well but was disturbed. Its times are shown and marked. Its bytes, which
/// other processes do not change, are as good as an ok cell's.
bool is_disturbed(const Json& cell);

/// Whether a round, of a timing or of a crossover, is disturbed and does not count: it says so, or
/// most of the lengths that a search compared stopped as disturbed. False for results that are
/// older than the key.
bool is_disturbed_round(const Json& round);

/// How many of `rounds` (an array) are disturbed.
std::size_t count_disturbed(const Json& rounds);

/// "6 of 10 rounds were preempted: repeat on a quiet machine".
std::string preempted_words(std::size_t disturbed, std::size_t rounds);

// ---- sections of a record that has its form: absent numbers are 0, absent texts empty -----------

/// Over rounds.
struct Timing {
  double median_seconds = 0;
  double low_seconds = 0;  ///< bounds of the median
  double high_seconds = 0;
  std::string interval;       ///< order, range or samples
  std::size_t rounds = 0;     ///< all
  std::size_t disturbed = 0;  ///< those that are disturbed
};
/// The timing of `what`, of the cell's primary where that is empty; nothing where it has none.
std::optional<Timing> timing_of(const Json& cell, const std::string& what = "");

struct Roofline {
  double floor_seconds = 0;
  double share = 0;
  std::string bound;
};
std::optional<Roofline> roofline_of(const Json& cell);

/// A segment of the test.
struct Segment {
  double questions = 0;
  double wrong_from_context = 0;    ///< share of the questions
  double wrong_from_elsewhere = 0;  ///< likewise
};

/// Questions, and those answered right, by distance in tokens.
struct LookBack {
  std::vector<double> distances;
  std::vector<double> questions;
  std::vector<double> right;
};

/// The accuracy of one look-up into windows of so many keys.
struct ReachLine {
  std::vector<std::int64_t> keys;
  std::vector<double> state_bytes;
  std::vector<double> reach;
};

struct Training {
  bool converged = false;
  bool disturbed = false;
  double guess = 0;
  double chance = 0;
  std::optional<double> reach;
  double stacked = 1;  ///< blocks that hold the window
  std::vector<Segment> test;
  LookBack look_back;
  std::optional<ReachLine> reach_line;
};
std::optional<Training> training_of(const Json& cell);

/// The note beneath a table with numbers that are marked as disturbed.
extern const char* const disturbed_note;

}  // namespace attnbench::result
