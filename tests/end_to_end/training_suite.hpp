// A small suite of trainings, and runs of it.
#pragma once

#include "tests/end_to_end/runs.hpp"

namespace attnbench::test {

/// Trainings of tiny models, a second each.
class TrainingSuite {
 public:
  /// The member "mechanisms" of the suite.
  struct Mechanisms {
    Json entries;
  };

  /// One training, of Latte; `more` is added to the suite's "set".
  explicit TrainingSuite(const Json& more = Json::object());
  TrainingSuite(const Mechanisms& mechanisms, const Json& more);

  std::string file() const { return folder_ / "suite.json"; }
  std::string run_folder() const { return folder_ / "run"; }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  /// attnbench run SUITE --out FOLDER MORE; two threads unless `more` sets them.
  std::vector<std::string> command(const std::string& more = {}) const;
  Finished run(const std::string& more = {}) const { return test::run(command(more), 580); }
  /// attnbench run --resume FOLDER.
  Finished resume(const std::string& more = {}) const;

  Json result() const;                        ///< result.json's "attnbench"
  Json cell() const;                          ///< its first cell
  std::map<std::string, Json> cells() const;  ///< all of them by label
  /// The checkpoint of the first training that has one; empty without any.
  std::filesystem::path checkpoint() const;

  /// Starts a run, kills it when its first training has a checkpoint for which `enough` holds, and
  /// waits until nothing of it is left.
  void kill_in_the_middle(const std::string& more,
                          const std::function<bool(const std::filesystem::path&)>& enough) const;

 private:
  TemporaryFolder folder_;
};

}  // namespace attnbench::test
