// Several trainings at a time, on shares of the threads (--jobs).
#include <signal.h>

#include "tests/program/training_suite.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

const Json no_clipping = {{"clip", 0}};
const Json three = {{"latte", Json::object()},
                    {"linear", Json::object()},
                    {"broken", {{"use", "softmax"}, {"learning_rate", 1e30}}}};

}  // namespace

TEST_CASE("trainings side by side give the bits of trainings alone with as many threads",
          "[train]") {
  const TrainingSuite alone(TrainingSuite::Mechanisms{three}, no_clipping);
  run(alone.command({"--threads", "1"}), 120, TrainingSuite::environment());
  const TrainingSuite beside(TrainingSuite::Mechanisms{three}, no_clipping);
  const Finished done = run(beside.command({"--jobs", "2"}), 120, TrainingSuite::environment());
  INFO(done.err);
  CHECK(done.exit_code == 5);  // a loss that is no number costs its own cell
  CHECK_THAT(done.err, Contains("2 trainings at a time, 1 thread each") && Contains("[3/3]"));
  CHECK(beside.result().at("run").at("jobs") == 2);
  auto want = alone.cells();
  auto got = beside.cells();
  for (const char* label : {"latte", "linear"}) {
    INFO(label);
    CHECK(got[label]["training"]["weights_hash"] == want[label]["training"]["weights_hash"]);
    CHECK(got[label]["side_by_side"] == Json{{"jobs", 2}, {"threads", 1}});
  }
  CHECK(got["broken"]["status"] == "error");
  CHECK_FALSE(want["latte"].contains("side_by_side"));
}

TEST_CASE("Ctrl-C ends all trainings, and they resume to the same bits", "[train]") {
  const Json two = {{"latte", Json::object()}, {"linear", Json::object()}};
  const Json longer = {{"epochs", 20}};  // so that neither is over before the other has begun
  const TrainingSuite unbroken(TrainingSuite::Mechanisms{two}, longer);
  REQUIRE(run(unbroken.command({"--jobs", "2"}), 120, TrainingSuite::environment()).exit_code == 0);
  const TrainingSuite broken(TrainingSuite::Mechanisms{two}, longer);
  {
    Running at_work(broken.command({"--jobs", "2"}), broken / "output",
                    TrainingSuite::environment());
    REQUIRE(wait_until([&] {
      std::error_code none;
      int kept = 0;
      for (const auto& entry :
           std::filesystem::directory_iterator(broken.run_folder() + "/checkpoints", none)) {
        kept += std::filesystem::exists(entry.path() / "checkpoint.pt");
      }
      return kept == 2;
    }));
    at_work.signal(SIGINT);
    CHECK(at_work.wait(20) == 130);
  }
  CHECK(broken.result().at("run").at("state") == "interrupted");
  const Finished last = run(broken.resume(), 120, TrainingSuite::environment());
  INFO(last.err);
  REQUIRE(last.exit_code == 0);
  CHECK(broken.result().at("run").at("jobs") == 2);  // as it was begun
  auto want = unbroken.cells();
  int resumed = 0;
  for (const auto& [label, cell] : broken.cells()) {
    INFO(label);
    CHECK(cell["training"]["weights_hash"] == want[label]["training"]["weights_hash"]);
    CHECK_FALSE(cell["training"].contains("checkpoint_notes"));
    resumed += cell["training"].contains("resumed_from_step");
  }
  CHECK(resumed == 2);
}
