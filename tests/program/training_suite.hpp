// A small suite of trainings, and runs of it.
#pragma once

#include "tests/program/runs.hpp"

namespace attnbench::test {

/// Trainings of tiny models, a few seconds each.
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
  std::vector<std::string> command(const std::vector<std::string>& more = {}) const;
  /// attnbench run --resume FOLDER.
  std::vector<std::string> resume(const std::vector<std::string>& more = {}) const;
  static std::map<std::string, std::string> environment();

  Json result() const;                        ///< result.json's "attnbench"
  Json cell() const;                          ///< its first cell
  std::map<std::string, Json> cells() const;  ///< all of them by label
  /// The checkpoint of the first training that has one; empty without any.
  std::filesystem::path checkpoint() const;

 private:
  TemporaryFolder folder_;
};

}  // namespace attnbench::test
