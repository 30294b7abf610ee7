#include "tests/program/training_suite.hpp"
#include "tests/support/files.hpp"
#include "tests/support/stored_result.hpp"

#include <algorithm>

namespace attnbench::test {
namespace {

std::vector<std::string> with(std::vector<std::string> words,
                              const std::vector<std::string>& more) {
  for (const char* flag : {"--no-ceilings", "--no-report", "--progress", "plain"}) {
    words.emplace_back(flag);
  }
  if (std::find(more.begin(), more.end(), "--threads") == more.end()) {
    words.insert(words.end(), {"--threads", "2"});
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

TrainingSuite::TrainingSuite(const Json& more)
    : TrainingSuite(Mechanisms{{{"latte", Json::object()}}}, more) {}

TrainingSuite::TrainingSuite(const Mechanisms& mechanisms, const Json& more) {
  Json set = {{"width", 16},
              {"heads", 1},
              {"batch", 8},
              {"layout", "convolution_first"},
              {"mlp", "identity"},
              {"vocabulary", 64},
              {"length", 16},
              {"pairs", 2},
              {"train_examples", 400},
              {"validation_examples", 50},
              {"test_examples", 50},
              {"epochs", 10},
              {"embedding_dropout", 0.1},
              {"learning_rate", 0.01},
              {"checkpoint_seconds", 0}};
  set.update(more);
  write_file(file(), Json{{"name", "training_suite"},
                          {"task", "mqar"},
                          {"set", set},
                          {"mechanisms", mechanisms.entries}}
                         .dump(1));
}

std::vector<std::string> TrainingSuite::command(const std::vector<std::string>& more) const {
  return with({program(), "run", file(), "--out", run_folder()}, more);
}

std::vector<std::string> TrainingSuite::resume(const std::vector<std::string>& more) const {
  return with({program(), "run", "--resume", run_folder()}, more);
}

std::map<std::string, std::string> TrainingSuite::environment() {
  return {{"XDG_CACHE_HOME", test::build_folder() + "/test_cache"}, {"OMP_WAIT_POLICY", "passive"}};
}

Json TrainingSuite::result() const {
  return attnbench::test::stored_result(run_folder() + "/result.json").at("attnbench");
}

Json TrainingSuite::cell() const { return result().at("cells").at(0); }

std::map<std::string, Json> TrainingSuite::cells() const {
  std::map<std::string, Json> cells;
  const Json all = result();
  for (const Json& cell : all.at("cells")) cells[cell.at("label")] = cell;
  return cells;
}

std::filesystem::path TrainingSuite::checkpoint() const {
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(run_folder() + "/checkpoints", ignored)) {
    return entry.path() / "checkpoint.pt";
  }
  return {};
}

}  // namespace attnbench::test
