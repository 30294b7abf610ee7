#include "tests/end_to_end/training_suite.hpp"

#include <signal.h>

#include "tests/support/catch.hpp"
#include "tests/support/stored_result.hpp"

namespace attnbench::test {
namespace {

std::vector<std::string> with(const std::string& line, const std::string& more) {
  const bool has_threads = more.find("--threads") != std::string::npos;
  return words(program() + " " + line + " --no-ceilings --no-report --progress plain " +
               (has_threads ? "" : "--threads 2 ") + more);
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

std::vector<std::string> TrainingSuite::command(const std::string& more) const {
  return with("run " + file() + " --out " + run_folder(), more);
}

Finished TrainingSuite::resume(const std::string& more) const {
  return test::run(with("run --resume " + run_folder(), more));
}

Json TrainingSuite::result() const {
  return attnbench::test::stored_result(run_folder() + "/result.json").at("attnbench");
}

Json TrainingSuite::cell() const { return result().at("cells").at(0); }

std::map<std::string, Json> TrainingSuite::cells() const { return cells_of(run_folder()); }

std::filesystem::path TrainingSuite::checkpoint() const {
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(run_folder() + "/checkpoints", ignored)) {
    return entry.path() / "checkpoint.pt";
  }
  return {};
}

void TrainingSuite::kill_in_the_middle(
    const std::string& more,
    const std::function<bool(const std::filesystem::path&)>& enough) const {
  Running at_work(command(more), folder_ / "output");
  REQUIRE(wait_until([&] { return !contents(checkpoint()).empty() && enough(checkpoint()); }));
  const pid_t child = child_of(at_work);
  at_work.signal(SIGKILL);
  at_work.wait();
  // It outlives its parents by moments, and might save again.
  REQUIRE(wait_until([&] { return !alive(child); }));
}

}  // namespace attnbench::test
