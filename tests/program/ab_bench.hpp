// A run of `attnbench ab` on cells so small that it takes seconds.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/program/runs.hpp"
#include "tests/support/files.hpp"

namespace attnbench::test {

struct Ab {
  TemporaryFolder folder;

  Finished operator()(std::vector<std::string> words) const {
    words.insert(words.begin(), {program(), "ab"});
    words.insert(words.end(),
                 {"--out", folder / "run", "--no-ceilings", "--set", "max_seconds=0.02", "--heads",
                  "1", "--head-dim", "8", "--threads", "1", "--progress", "plain"});
    return run(words, 300, {{"XDG_CACHE_HOME", test::build_folder() + "/test_cache"}});
  }
  Json read(const std::string& name) const {
    return Json::parse(read_file(folder / ("run/" + name)));
  }
};

}  // namespace attnbench::test
