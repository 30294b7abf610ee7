// Trainings as a user runs them, killed and resumed. tests/fuzz/kills.py kills them at any moment.
#include <signal.h>

#include "tests/end_to_end/training_suite.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

TEST_CASE("a training runs once, and is resumed to the same bits from a damaged checkpoint",
          "[train][processes]") {
  const TrainingSuite whole;
  const Finished run = whole.run("--rounds 5");
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.err, Contains("[1/1]") && Contains("accuracy 0."));
  CHECK_THAT(run.out, Contains("accuracy on the test") && Contains("learning rate chosen"));
  const Json cell = whole.cell();
  CHECK(cell["status"] == "ok");
  CHECK(cell["check"]["verdict"] == "ok");
  CHECK(cell["training"]["steps"] == 500);
  CHECK(cell["training"]["curve"].size() == 10);
  CHECK(cell["settings"]["schedule"] == "cosine");  // defaults are recorded, too
  CHECK(cell["metrics"]["state_bytes"].get<int>() > 0);
  CHECK_FALSE(std::filesystem::exists(whole.checkpoint()));

  const TrainingSuite broken;
  std::string newest;
  // Again after a kill between the two renames of a save, which leaves nothing to damage.
  while (newest.empty()) {
    std::filesystem::remove_all(broken.run_folder());
    broken.kill_in_the_middle("", [](const std::filesystem::path& checkpoint) {
      return std::filesystem::exists(checkpoint.parent_path() / "checkpoint.previous.pt");
    });
    newest = contents(broken.checkpoint());
  }
  write_file(broken.checkpoint(), newest.substr(0, newest.size() / 2));
  const Finished resumed = broken.resume();
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  const Json training = broken.cell()["training"];
  CHECK(training["resumed_from_step"].get<int>() > 0);
  CHECK_THAT(training["checkpoint_notes"].at(0).get<std::string>(),
             Contains("checkpoint.pt is cut short"));
  CHECK(training["weights_hash"] == cell["training"]["weights_hash"]);
  CHECK(training["curve"] == cell["training"]["curve"]);
}

TEST_CASE("a training of another build of a plugin is not resumed", "[train][processes][night]") {
  const TrainingSuite suite;
  const std::string plugin = suite / "plugin.so";
  write_file(plugin, read_file(misbehave_plugin()));
  suite.kill_in_the_middle("--plugin " + plugin, [](const auto&) { return true; });
  write_file(plugin, read_file(plugin) + "another build");
  const Finished resumed = suite.resume("--plugin " + plugin);
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK_THAT(resumed.err, Contains("the worker or a plugin was built anew"));
  const Json training = suite.cell()["training"];
  CHECK_FALSE(training.contains("resumed_from_step"));
  CHECK_THAT(training["checkpoint_notes"].at(0).get<std::string>(), Contains("built anew"));
}

TEST_CASE("trainings side by side, interrupted and resumed, give the bits of trainings alone",
          "[train][processes]") {
  const TrainingSuite::Mechanisms three{
      {{"latte", Json::object()},
       {"linear", Json::object()},
       {"broken", {{"use", "softmax"}, {"learning_rate", 1e30}}}}};
  const Json set = {{"clip", 0},
                    {"epochs", 20},
                    {"train_examples", 160}};  // so that none is over before all have begun
  const TrainingSuite alone(three, set);
  CHECK(alone.run("--threads 1").exit_code == 5);  // a loss that is no number costs its own cell
  auto want = alone.cells();
  CHECK(want["broken"]["status"] == "error");
  CHECK_THAT(want["broken"]["reason"].get<std::string>(), Contains("not a finite number at step"));
  CHECK_FALSE(want["broken"].contains("training"));
  CHECK_FALSE(want["broken"].contains("metrics"));
  CHECK_FALSE(want["latte"].contains("side_by_side"));

  const TrainingSuite beside(three, set);
  {
    Running at_work(beside.command("--jobs 2"), beside / "output");
    REQUIRE(wait_until([&] {
      std::error_code none;
      int kept = 0;
      for (const auto& entry :
           std::filesystem::directory_iterator(beside.run_folder() + "/checkpoints", none)) {
        kept += std::filesystem::exists(entry.path() / "checkpoint.pt");
      }
      return kept >= 2;
    }));
    at_work.signal(SIGINT);
    CHECK(at_work.wait() == 130);
  }
  CHECK_THAT(read_file(beside / "output"), Contains("2 trainings at a time, 1 thread each"));
  CHECK(beside.result().at("run").at("state") == "interrupted");
  const Finished resumed = beside.resume();
  INFO(resumed.err);
  CHECK(resumed.exit_code == 5);
  CHECK(beside.result().at("run").at("jobs") == 2);  // as it was begun
  auto got = beside.cells();
  int gone_on_with = 0;
  for (const char* label : {"latte", "linear"}) {
    INFO(label);
    CHECK(got[label]["training"]["weights_hash"] == want[label]["training"]["weights_hash"]);
    CHECK(got[label]["side_by_side"] == Json{{"jobs", 2}, {"threads", 1}});
    CHECK_FALSE(got[label]["training"].contains("checkpoint_notes"));
    gone_on_with += got[label]["training"].contains("resumed_from_step");
  }
  CHECK(gone_on_with >= 1);  // one may have ended between the look and the signal
  CHECK(got["broken"]["status"] == "error");
}

TEST_CASE("a training by programs that were copied out of their checkout has their commit",
          "[train][night]") {
  const std::filesystem::path built = std::filesystem::path(program()).parent_path();
  const std::string commit = contents(built / "attnbench.commit");
  if (commit.empty()) {
    WARN("needs a build from a checkout of git");
    return;
  }
  const TrainingSuite suite(Json{{"epochs", 1}});
  const TemporaryFolder copied;
  std::filesystem::copy_file(program(), copied / "attnbench");
  std::filesystem::copy_file(built / "attnbench.commit", copied / "attnbench.commit");
  std::filesystem::create_symlink(worker_program(), copied / "attnbench-worker");
  std::vector<std::string> command = suite.command();
  command.front() = copied / "attnbench";
  const Finished done = run(command);
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  const Json said = suite.result().at("provenance");
  CHECK(said.at("commit") == commit.substr(0, 40));
  CHECK(said.at("dirty") == Contains("+").match(commit));
}
