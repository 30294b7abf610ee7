// Trainings as a user runs them, killed and resumed.
#include <signal.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "tests/program/training_suite.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

/// The content now; may be empty, since a save renames two files.
std::string contents(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace

TEST_CASE("a training runs once, whatever the rounds, and is reported", "[train]") {
  const TrainingSuite suite;
  const Finished run =
      attnbench::test::run(suite.command({"--rounds", "5"}), 120, TrainingSuite::environment());
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.err, Contains("[1/1]") && Contains("accuracy 0."));
  CHECK_THAT(run.out, Contains("accuracy on the test") && Contains("learning rate chosen"));
  const Json cell = suite.cell();
  CHECK(cell["status"] == "ok");
  CHECK(cell["check"]["verdict"] == "ok");
  CHECK(cell["training"]["steps"] == 500);
  CHECK(cell["training"]["curve"].size() == 10);
  CHECK(cell["settings"]["schedule"] == "cosine");  // defaults are recorded, too
  CHECK(cell["metrics"]["state_bytes"].get<int>() > 0);
  CHECK_FALSE(std::filesystem::exists(suite.checkpoint()));
}

TEST_CASE("a run killed at any moment resumes to the same bits", "[train]") {
  const TrainingSuite unbroken;
  REQUIRE(run(unbroken.command(), 120, TrainingSuite::environment()).exit_code == 0);
  const std::string want = unbroken.cell()["training"]["weights_hash"];

  const TrainingSuite broken;
  std::mt19937 random(7);
  int kills = 0;
  while (kills < 4) {
    Running at_work(kills == 0 ? broken.command() : broken.resume(), broken / "output",
                    TrainingSuite::environment());
    const std::string before = kills == 0 ? std::string() : contents(broken.checkpoint());
    REQUIRE(wait_until([&] {
      const std::string now = contents(broken.checkpoint());
      return !now.empty() && now != before;
    }));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 150));
    at_work.signal(SIGKILL);
    at_work.wait(10);
    ++kills;
    if (!std::filesystem::exists(broken.checkpoint())) break;  // it was over
  }
  const Finished last = run(broken.resume(), 120, TrainingSuite::environment());
  INFO(last.err);
  REQUIRE(last.exit_code == 0);
  CHECK(kills >= 1);
  CHECK(broken.cell()["training"]["weights_hash"] == want);
  CHECK(broken.cell()["training"]["curve"] == unbroken.cell()["training"]["curve"]);
  CHECK(broken.cell()["training"]["resumed_from_step"].get<int>() > 0);
}

TEST_CASE("a damaged checkpoint is reported, and the previous one used", "[train]") {
  const TrainingSuite suite;
  std::string whole;
  // Repeat after a kill between the two renames of a save, which leaves nothing to damage.
  for (auto command = suite.command(); whole.empty(); command = suite.resume()) {
    Running at_work(command, suite / "output", TrainingSuite::environment());
    REQUIRE(wait_until([&] {
      const auto file = suite.checkpoint();
      return std::filesystem::exists(file.parent_path() / "checkpoint.previous.pt") &&
             !contents(file).empty();
    }));
    const pid_t child = child_of(at_work);
    at_work.signal(SIGKILL);
    at_work.wait(10);
    // It outlives its parents by moments, and might save again.
    REQUIRE(wait_until([&] { return !alive(child); }));
    whole = contents(suite.checkpoint());
  }
  write_file(suite.checkpoint(), whole.substr(0, whole.size() / 2));
  REQUIRE(run(suite.resume(), 120, TrainingSuite::environment()).exit_code == 0);
  const Json training = suite.cell()["training"];
  CHECK(training["resumed_from_step"].get<int>() > 0);
  CHECK_THAT(training["checkpoint_notes"].at(0).get<std::string>(),
             Contains("checkpoint.pt is cut short"));
}

TEST_CASE("a training of another build of a plugin is not resumed", "[train]") {
  const TrainingSuite suite;
  const std::string plugin = suite / "plugin.so";
  write_file(plugin, read_file(misbehave_plugin()));
  const std::vector<std::string> flags{"--plugin", plugin};
  {
    Running at_work(suite.command(flags), suite / "output", TrainingSuite::environment());
    REQUIRE(wait_until([&] { return !contents(suite.checkpoint()).empty(); }));
    const pid_t child = child_of(at_work);
    at_work.signal(SIGKILL);
    at_work.wait(10);
    REQUIRE(wait_until([&] { return !alive(child); }));
  }
  write_file(plugin, read_file(plugin) + "another build");
  const Finished resumed = run(suite.resume(flags), 120, TrainingSuite::environment());
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK_THAT(resumed.err, Contains("the worker or a plugin was built anew"));
  const Json training = suite.cell()["training"];
  CHECK_FALSE(training.contains("resumed_from_step"));
  CHECK_THAT(training["checkpoint_notes"].at(0).get<std::string>(), Contains("built anew"));
}

TEST_CASE("a loss that is not finite is an error that names the step", "[train]") {
  const TrainingSuite suite({{"learning_rate", 1e30}, {"clip", 0}});
  const Finished done = run(suite.command(), 120, TrainingSuite::environment());
  INFO(done.err);
  CHECK(done.exit_code == 5);
  const Json cell = suite.cell();
  CHECK(cell["status"] == "error");
  CHECK_THAT(cell["reason"].get<std::string>(), Contains("not a finite number at step"));
  CHECK_FALSE(cell.contains("training"));
  CHECK_FALSE(cell.contains("metrics"));
}
