// The history of a benchmark: JSON Lines, a line for each timing of each cell of each run.
//
//   {"version": 1, "commit", "date", "machine", "machine_name", "id", "what", "label", "name",
//    "median_seconds", "calibrated_median", "rounds"}
//
// `date` is when the run began, `machine` a fingerprint of host, CPU model, threads and cards, `id`
// the cell's. A key that is not known is absent.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/result/document.hpp"

namespace attnbench::reports::trend {

constexpr int history_version = 1;

struct HistoryLine {
  int version = history_version;
  std::string commit;
  std::string date;          ///< "2026-01-31T12:00:00Z"
  std::string machine;       ///< fingerprint
  std::string machine_name;  ///< for people
  std::string id;
  std::string what;  ///< forward, step, …
  std::string label;
  std::string name;  ///< task, label and place, for people
  double median_seconds = 0;
  /// The median of the rounds' times in units of each round's calibration probe; absent where one
  /// has none.
  std::optional<double> calibrated_median;
  int rounds = 0;  ///< undisturbed

  /// What two lines of one measurement share.
  std::string key() const;
};
ATTNBENCH_JSON(HistoryLine);

/// The timings of the cells that are ok: a disturbed one says nothing of a commit.
std::vector<HistoryLine> lines_of(const result::Result& result);

struct History {
  std::vector<HistoryLine> lines;   ///< in the file's order
  std::vector<std::string> faults;  ///< "FILE:LINE: …", lines that were left out
};

/// Reads a history; bad lines are left out and named. Nothing where there is no file. Throws
/// UsageFailure where it is not a regular file, or no line of it is of a history.
History read_history(const std::filesystem::path& file);

/// Appends all lines in one piece, or none. Throws UsageFailure where the file has one of them
/// already (naming its line) or two of them are of one measurement, EnvironmentFailure where it
/// cannot be written: it is then as before.
void append_history(const std::filesystem::path& file, const std::vector<HistoryLine>& lines);

}  // namespace attnbench::reports::trend
