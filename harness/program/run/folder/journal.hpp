// Journal: what a run has measured so far, as JSON lines, each synced before the next.
//
// journal.jsonl
//   {type: header, schema, suite, cells, measure, rounds, plugins, seed, threads, blas, command,
//    reproduce, started_at, identity}
//                  written by each start of the run; the newest one counts. identity: what must
//                  be equal for records to hold, see resume.hpp
//   {type: probe, device, ceilings, machine}
//   {type: record, cell, round, status, reason, …}   see protocol.hpp; reused_from where copied
//   {type: repeat, cell, reason}    the records of this cell above no longer hold
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/failure.hpp"
#include "core/result/record.hpp"

namespace attnbench::run {

using Json = nlohmann::json;

constexpr int journal_schema = 1;

/// The journal cannot be written: a full disk, a limit, a broken device. What it held is safe.
class JournalFailure : public EnvironmentFailure {
 public:
  using EnvironmentFailure::EnvironmentFailure;
};

/// The journal's folder was deleted or moved during the run.
class JournalGone : public EnvironmentFailure {
 public:
  using EnvironmentFailure::EnvironmentFailure;
};

/// What the worker says of a device: its ceilings, and its part of the machine card.
struct DeviceProbe {
  std::string device = "cpu";
  Values ceilings;
  Values machine;
};
/// Reads a probe line of the journal, or the worker's answer; throws SchemaError.
void from_json(const Json& json, DeviceProbe& answer);
/// Writes it as a line of the journal.
void to_json(Json& json, const DeviceProbe& answer);

/// The facts of a start of the run that a later start asks for. Unknown ones are absent.
struct JournalHeader {
  std::optional<int> schema;
  Values suite;
  std::vector<Values> cells;
  Values measure;
  std::optional<int> rounds;
  std::optional<double> budget_seconds;
  std::optional<std::vector<std::string>> plugins;
  std::optional<std::uint64_t> seed;
  std::optional<int> threads;
  std::optional<int> jobs;
  Json blas;  ///< see harness/program/run/plan/blas_core.hpp
  std::string reproduce;
  Values identity;  ///< see resume.hpp
};
/// Throws SchemaError, also where suite, cells, measure or identity are missing.
void from_json(const Json& json, JournalHeader& header);

/// The records of rounds by cell id.
using Records = std::map<std::string, std::vector<result::RoundRecord>>;

/// What a journal says.
struct JournalContents {
  Json header;                                ///< the newest
  std::map<std::string, DeviceProbe> probes;  ///< newest, by device
  Records rounds;                             ///< records that hold, in order
  std::map<std::string, Json> identities;     ///< identity of the start that measured each cell
  /// Why the records of a cell do not hold, by its id: "FILE:LINE: …" of the first malformed one.
  std::map<std::string, std::string> faults;
  /// Lines that name no cell, which nothing can be done with: "FILE:LINE: …".
  std::vector<std::string> skipped;
  std::size_t whole_bytes = 0;  ///< up to the end of the last whole line
};

/// Reads a journal. A last line that was cut off is left out; of two records of one cell and round
/// the later counts. A record that is not of its form (core/result/result_check.hpp) costs the
/// records of its cell; one that names no cell is skipped. Throws EnvironmentFailure naming the
/// file and line if the file is missing or not a journal.
JournalContents read_journal(const std::filesystem::path& file);

/// Whether an attnbench writes to the journal now.
bool is_being_written(const std::filesystem::path& file);

/// Calls `action`, during which no attnbench can begin to write to the journal; not where one does,
/// where there is no journal, or where files cannot be locked.
void if_not_written(const std::filesystem::path& file, const std::function<void()>& action);

class Journal {
 public:
  /// Opens `file` for appending, creating it if need be, and cuts off a last line that is not
  /// whole. Throws UsageFailure if another run writes to it, JournalFailure if it cannot be opened.
  explicit Journal(std::filesystem::path file);
  ~Journal();
  Journal(const Journal&) = delete;
  Journal& operator=(const Journal&) = delete;

  /// Throws JournalGone unless the file is still where it was opened.
  void require_there() const;
  /// Returns when the line is on the disk. Throws JournalFailure, leaving no half line behind.
  void append(const Json& line);

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
  off_t size_ = 0;
};

}  // namespace attnbench::run
