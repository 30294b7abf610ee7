// What the tests of whole runs share: small suites, runs of them, and what they left behind.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

namespace attnbench::test {

using Json = nlohmann::json;

/// A folder with a suite of misbehaving mechanisms in it, and runs of that suite.
class Bench {
 public:
  /// `entries` as a suite's "mechanisms"; each is a cell of the plugin's mechanism, in this order.
  explicit Bench(const Json& entries, int rounds = 2);

  std::string folder() const { return folder_ / "run"; }
  std::string suite() const { return folder_ / "suite.json"; }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  /// attnbench run SUITE --out FOLDER MORE.
  std::vector<std::string> command(const std::string& more = {}) const;
  Finished run(const std::string& more = {},
               const std::map<std::string, std::string>& environment = {}) const;
  /// attnbench run --resume FOLDER MORE.
  Finished resume(const std::string& more = {},
                  const std::map<std::string, std::string>& environment = {}) const;
  /// The folder of a run of the same suite in place of a run of its own.
  void take_run_of(const Bench& other) const;

  /// result.json's cells by label.
  std::map<std::string, Json> cells() const;
  /// "ok" where it was_measured.
  std::string status(const std::string& label) const;
  std::string reason(const std::string& label) const;
  std::string state() const;  ///< of the run, from result.json
  /// The journal's records, in order.
  std::vector<Json> records() const;
  std::string journal() const { return read_file(folder() + "/journal.jsonl"); }

 private:
  TemporaryFolder folder_;
};

/// The content now; empty where there is none.
std::string contents(const std::filesystem::path& file);

/// The cells by label of the run in that folder.
std::map<std::string, Json> cells_of(const std::filesystem::path& run_folder);

/// Whether a cell was measured to its end. Other programs may have been at work beside it, so that
/// it is disturbed: on a machine that runs several tests at once nobody can promise otherwise.
bool was_measured(const Json& cell);

/// The plugin of tests/end_to_end/plugin_sources.
std::string misbehave_plugin();

/// Waits until `condition` holds; false if it does not within `seconds`, a limit against hanging.
bool wait_until(const std::function<bool()>& condition, double seconds = 120);

/// The worker of a run at work, and the child that measures; -1 where there is none.
pid_t worker_of(const Running& run);
pid_t child_of(const Running& run);
bool alive(pid_t process);

}  // namespace attnbench::test
