// The record of a cell: what it was, how it ended, and what was measured over its rounds.
// record.cpp says what each member is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/claims.hpp"
#include "core/json_schema.hpp"
#include "core/result/crossover.hpp"
#include "core/result/training.hpp"
#include "core/status.hpp"

namespace attnbench::result {

/// One round of one timing, in seconds.
struct TimingRound {
  std::optional<std::int64_t> round;
  double median_seconds = 0;
  std::optional<double> low_seconds;
  std::optional<double> high_seconds;
  std::vector<double> samples_seconds;
  std::string stop;
  std::optional<std::vector<double>> samples_cpu_share;
  std::optional<std::vector<std::int64_t>> samples_switches;
  std::optional<std::vector<std::size_t>> preempted;
  std::optional<double> lost_share;
  std::optional<double> stolen_share;
  std::optional<double> others_share;
  bool own_threads_waited = false;
  std::optional<double> clock_ratio;
  std::optional<bool> graph;
  std::optional<std::string> graph_reason;
  bool disturbed = false;
  std::string disturbed_by;
  std::optional<double> calibration_seconds;
  Values further;
};

/// A timing over rounds, in seconds.
struct Timing {
  double median_seconds = 0;
  double low_seconds = 0;
  double high_seconds = 0;
  std::string interval;
  std::optional<double> minimum_seconds;
  std::optional<double> calibrated_median_seconds;
  std::optional<double> calibrated_low_seconds;
  std::optional<double> calibrated_high_seconds;
  bool disturbed = false;
  std::vector<TimingRound> rounds;
  Values further;

  std::size_t disturbed_rounds() const;
};

/// The implementation that ran, and why that one.
struct Chosen {
  std::string implementation;
  std::optional<std::string> reason;
};

/// The check against the definition in double.
struct Check {
  std::string verdict;
  std::string reason;
  Values further;
};

struct Roofline {
  double floor_seconds = 0;
  double share = 0;
  std::string bound;
};

struct CellRecord {
  std::string id;
  std::string label;
  std::string task;
  std::string task_label;
  std::string mechanism;
  std::string implementation;
  std::string device = "cpu";
  Values options;
  Values settings;
  Values problem;
  std::optional<std::vector<std::string>> varies;
  Status status = Status::error;
  std::string reason;
  Json detail;
  std::string reproduce;
  std::string waiting;
  std::string reused_from;
  Values side_by_side;
  std::optional<Chosen> chosen;
  std::optional<Cost> cost;
  Values growth;
  std::map<std::string, Timing> timing;
  std::string primary;
  std::optional<Crossover> crossover;
  std::optional<Training> training;
  std::optional<Check> check;
  std::optional<Roofline> roofline;
  Values memory;
  Values device_memory;
  Values metrics;
  Values further;

  /// The name of its task in the suite.
  const std::string& task_name() const { return task_label.empty() ? task : task_label; }
};

// to_json writes a part as the schema has it; from_json throws SchemaError.
ATTNBENCH_DESCRIBED(TimingRound);
ATTNBENCH_DESCRIBED(Timing);
ATTNBENCH_DESCRIBED(Chosen);
ATTNBENCH_DESCRIBED(Check);
ATTNBENCH_DESCRIBED(Roofline);
ATTNBENCH_DESCRIBED(CellRecord);

/// Whether a cell ended well and was not disturbed: what may be ranked, fitted and compared.
bool is_ok(const CellRecord& cell);
/// Whether a cell ended well but was disturbed. Its times are shown and marked. Its bytes, which
/// other processes do not change, are as good as an ok cell's.
bool is_disturbed(const CellRecord& cell);
/// Whether nothing could be held against its output, which is why it ended as an error.
bool is_unchecked(const CellRecord& cell);

/// The timing of `what`, of the cell's primary where that is empty; null where it has none. Refers
/// to the cell.
const Timing* timing_of(const CellRecord& cell, const std::string& what = "");

/// The words for disturbed rounds: "6 of 10 rounds were preempted: repeat on a quiet machine".
std::string preempted_words(std::size_t disturbed, std::size_t rounds);

/// The note beneath a table with numbers that are marked as disturbed.
extern const char* const disturbed_note;

// ---- one round: a line of the journal, and the worker's answer to run

/// What a task measured in one round.
struct Measured {
  std::map<std::string, TimingRound> timing;
  std::optional<CrossoverRound> crossover;
  std::optional<Training> training;
  std::optional<Check> check;
  std::optional<Chosen> chosen;
  Values memory;
  Values device_memory;
  Values metrics;
  std::optional<double> calibration_seconds;
  std::optional<double> lost_share;
  Values further;
};

struct RoundRecord {
  std::string cell;  ///< its id
  int round = 0;
  Status status = Status::error;
  std::string reason;
  Json detail;
  std::string started_at;
  std::optional<double> wall_seconds;
  Measured measured;
  std::string reused_from;
  Values side_by_side;
  std::string waiting;
  Values further;

  bool ok() const { return status == Status::ok; }
};

// to_json writes a record as the schema has it, with the type of a line of the journal; from_json
// throws SchemaError.
ATTNBENCH_DESCRIBED(Measured);
ATTNBENCH_DESCRIBED(RoundRecord);

}  // namespace attnbench::result
