// A run of `attnbench ab` on cells so small that it takes seconds.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/runs.hpp"
#include "tests/support/files.hpp"

namespace attnbench::test {

struct Ab {
  TemporaryFolder folder;

  std::vector<std::string> command(const std::string& more) const {
    return words(program() + " ab " + more + " --out " + out() +
                 " --no-ceilings --set max_seconds=0.02 --heads 1 --head-dim 8 --threads 1 "
                 "--progress plain");
  }
  Finished operator()(const std::string& more) const { return run(command(more)); }
  std::string out() const { return folder / "run"; }
  Json read(const std::string& name) const {
    return Json::parse(read_file(folder / ("run/" + name)));
  }
};

/// A small suite beside the folder of the run.
inline std::string small_suite(const Ab& ab, const Json& more = Json::object()) {
  Json suite = {{"name", "small"},
                {"task", "kernel"},
                {"set", {{"length", 16}, {"pattern", "causal"}}},
                {"mechanisms", {{"plain", {{"use", "softmax"}}}, {"tiles", {{"use", "flash"}}}}},
                {"gate",
                 {{"relative_change", 0.5},
                  {"confidence", 0.9},
                  {"rounds", 6},
                  {"rounds_most", 6},
                  {"confirm", 0}}}};
  suite.merge_patch(more);
  write_file(ab.folder / "small.json", suite.dump());
  return ab.folder / "small.json";
}

}  // namespace attnbench::test
