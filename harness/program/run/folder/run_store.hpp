// RunStore: what is kept of a run: the journal, the records of earlier starts that still hold, the
// files of its cells and the result.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/result/document.hpp"
#include "harness/program/run/folder/journal.hpp"
#include "harness/program/run/folder/resume.hpp"
#include "harness/program/run/folder/run_folder.hpp"
#include "harness/program/run/plan/planning.hpp"

namespace attnbench::run {

/// What must hold for an earlier record to be used, and which ones are measured again nevertheless.
struct Reuse {
  Identity identity;
  std::set<std::string> retry;  ///< statuses
};

class RunStore {
 public:
  /// Opens the folder's journal. Throws as Journal does. `keep_checkpoints`: those of trainings
  /// that ended well, too.
  explicit RunStore(RunFolder folder, bool keep_checkpoints = false);

  const RunFolder& folder() const { return folder_; }
  const Records& records() const { return records_; }
  const std::map<std::string, DeviceProbe>& probes() const { return probes_; }  ///< by device
  bool has_probe(const std::string& device) const { return probes_.count(device) != 0; }

  /// Writes the header of a start that uses no earlier records.
  void begin(const Json& header) { journal_.append(header); }
  /// Writes the header, and uses the records of `planned` cells that the journal has and that hold.
  /// Returns those, with the reasons why others are measured again.
  Resumed resume(const Json& header, const std::vector<Planned>& planned, const Reuse& reuse);
  /// Copies records of `other`, another run, for planned cells that have none here. Returns what
  /// was copied, with the reasons why other records were not.
  Resumed copy_from(const RunFolder& other, const std::vector<Planned>& planned,
                    const Reuse& reuse);

  /// Appends the record of a round. A cell that ended well needs its checkpoints no more, unless
  /// they are to be kept; after a failure the next start may continue from them.
  void add(result::RoundRecord record);
  /// Appends the answer to a probe.
  void add_probe(DeviceProbe answer);
  /// Notes that a device could not be probed: it is not probed again in this start.
  void add_no_probe(const std::string& device) { probes_[device] = {}; }
  /// Removes the log of a cell that wrote nothing.
  void drop_empty_log(const std::string& cell) const;

  /// Throws JournalGone where the folder was deleted or moved.
  void require_there() const { journal_.require_there(); }
  /// Writes result.json. Throws EnvironmentFailure.
  void write_result(const result::Result& result) const;
  /// The command that resumes this run; `verb` run or ab.
  std::string resume_command(const std::string& verb) const;

 private:
  RunFolder folder_;
  Journal journal_;
  bool keep_checkpoints_;
  Records records_;
  std::map<std::string, DeviceProbe> probes_;
};

}  // namespace attnbench::run
