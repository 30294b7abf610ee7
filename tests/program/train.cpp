// Trainings as a user runs them: once each, gone on with after a kill, their data written out.
#include <signal.h>

#include <chrono>
#include <random>
#include <sstream>
#include <thread>

#include "tests/program/runs.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

/// A suite of one training of a few seconds, and runs of it.
class School {
 public:
  explicit School(const Json& more = Json::object()) {
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
    write_file(suite(), Json{{"name", "school"},
                             {"task", "mqar"},
                             {"set", set},
                             {"mechanisms", {{"latte", Json::object()}}}}
                            .dump(1));
  }

  std::string suite() const { return folder_ / "suite.json"; }
  std::string run_folder() const { return folder_ / "run"; }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  std::vector<std::string> command(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{program(), "run", suite(), "--out", run_folder()};
    return with(std::move(words), more);
  }
  std::vector<std::string> resume(const std::vector<std::string>& more = {}) const {
    return with({program(), "run", "--resume", run_folder()}, more);
  }
  static std::map<std::string, std::string> environment() {
    return {{"XDG_CACHE_HOME", std::string(ATTNBENCH_BINARY_DIR) + "/test_cache"},
            {"OMP_WAIT_POLICY", "passive"}};
  }
  Json cell() const {
    const Json result = Json::parse(read_file(run_folder() + "/result.json"));
    return result.at("attnbench").at("cells").at(0);
  }
  std::filesystem::path checkpoint() const {
    std::error_code ignored;
    for (const auto& entry :
         std::filesystem::directory_iterator(run_folder() + "/checkpoints", ignored)) {
      return entry.path() / "checkpoint.pt";
    }
    return {};
  }

 private:
  static std::vector<std::string> with(std::vector<std::string> words,
                                       const std::vector<std::string>& more) {
    for (const char* flag :
         {"--no-ceilings", "--no-report", "--progress", "plain", "--threads", "2"}) {
      words.emplace_back(flag);
    }
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("a training is run once, and told of", "[train]") {
  const School school;
  const Finished run =
      attnbench::test::run(school.command({"--rounds", "5"}), 120, School::environment());
  INFO(run.err);
  REQUIRE(run.exit_code == 0);
  CHECK_THAT(run.err, Contains("[1/1]") && Contains("accuracy 0."));
  CHECK_THAT(run.out, Contains("accuracy on the test") && Contains("learning rate chosen"));
  const Json cell = school.cell();
  CHECK(cell["status"] == "ok");
  CHECK(cell["check"]["verdict"] == "ok");
  CHECK(cell["training"]["steps"] == 500);
  CHECK(cell["training"]["curve"].size() == 10);
  CHECK(cell["settings"]["schedule"] == "cosine");  // said or not, every choice is there
  CHECK(cell["metrics"]["state_bytes"].get<int>() > 0);
  CHECK_FALSE(std::filesystem::exists(school.checkpoint()));
}

TEST_CASE("a run killed at any moment goes on to the same bits", "[train]") {
  const School unbroken;
  REQUIRE(run(unbroken.command(), 120, School::environment()).exit_code == 0);
  const std::string want = unbroken.cell()["training"]["weights_hash"];

  const School broken;
  std::mt19937 random(7);
  int kills = 0;
  while (kills < 4) {
    Running at_work(kills == 0 ? broken.command() : broken.resume(), broken / "output",
                    School::environment());
    const std::string before = kills == 0 ? std::string() : read_file(broken.checkpoint());
    REQUIRE(wait_until([&] {
      const auto file = broken.checkpoint();
      return !file.empty() && std::filesystem::exists(file) && read_file(file) != before;
    }));
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % 150));
    at_work.signal(SIGKILL);
    at_work.wait(10);
    ++kills;
    if (!std::filesystem::exists(broken.checkpoint())) break;  // it was over
  }
  const Finished last = run(broken.resume(), 120, School::environment());
  INFO(last.err);
  REQUIRE(last.exit_code == 0);
  CHECK(kills >= 1);
  CHECK(broken.cell()["training"]["weights_hash"] == want);
  CHECK(broken.cell()["training"]["curve"] == unbroken.cell()["training"]["curve"]);
  CHECK(broken.cell()["training"]["resumed_from_step"].get<int>() > 0);
}

TEST_CASE("a damaged checkpoint is told of, and the one before it taken", "[train]") {
  const School school;
  {
    Running at_work(school.command(), school / "output", School::environment());
    REQUIRE(wait_until([&] {
      return std::filesystem::exists(school.checkpoint().parent_path() / "checkpoint.previous.pt");
    }));
    const pid_t child = child_of(at_work);
    at_work.signal(SIGKILL);
    at_work.wait(10);
    // It outlives its parents by moments, and might save once more.
    REQUIRE(wait_until([&] { return !alive(child); }));
  }
  const std::string whole = read_file(school.checkpoint());
  if (whole.empty()) return;  // killed between two renames: nothing to damage
  write_file(school.checkpoint(), whole.substr(0, whole.size() / 2));
  REQUIRE(run(school.resume(), 120, School::environment()).exit_code == 0);
  const Json training = school.cell()["training"];
  CHECK(training["resumed_from_step"].get<int>() > 0);
  CHECK_THAT(training["checkpoint_notes"].at(0).get<std::string>(),
             Contains("checkpoint.pt is cut short"));
}

TEST_CASE("a loss that is no number is an error, with the step", "[train]") {
  const School school({{"learning_rate", 1e30}, {"clip", 0}});
  const Finished done = run(school.command(), 120, School::environment());
  INFO(done.err);
  CHECK(done.exit_code == 5);
  const Json cell = school.cell();
  CHECK(cell["status"] == "error");
  CHECK_THAT(cell["reason"].get<std::string>(), Contains("not a finite number at step"));
  CHECK_FALSE(cell.contains("training"));
  CHECK_FALSE(cell.contains("metrics"));
}

TEST_CASE("the data of a training can be had", "[train]") {
  const TemporaryFolder folder;
  const std::string out = folder / "data";
  const std::vector<std::string> command{program(),
                                         "data",
                                         "mqar",
                                         "--set",
                                         "length=16",
                                         "--set",
                                         "pairs=2",
                                         "--set",
                                         "vocabulary=64",
                                         "--set",
                                         "train_examples=20",
                                         "--set",
                                         "test_examples=5",
                                         "--set",
                                         "validation_examples=3",
                                         "--out",
                                         out};
  const Finished done = run(command, 60, School::environment());
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK_THAT(done.out, Contains("train.jsonl"));
  std::istringstream lines(read_file(out + "/train.jsonl"));
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Json one = Json::parse(line);
    CHECK(one["example"] == count);
    CHECK(one["tokens"].size() == 16);
    REQUIRE(one["questions"].size() == 2);
    for (const Json& question : one["questions"]) {
      const int position = question["position"];
      CHECK(one["tokens"][static_cast<std::size_t>(position - question["distance"].get<int>())] ==
            question["label"]);
    }
  }
  CHECK(count == 20);
  const auto refused = [&](std::vector<std::string> more, const char* why) {
    std::vector<std::string> words{program(), "data"};
    words.insert(words.end(), more.begin(), more.end());
    const Finished bad = run(words, 60, School::environment());
    INFO(bad.err);
    CHECK(bad.exit_code == 2);
    CHECK_THAT(bad.err, Contains(why));
  };
  refused({"mqar", "--out", out}, "holds files already");
  const std::string other = folder / "other";
  refused({"kernel", "--out", other}, "learns from nothing");
  refused({"mqr", "--out", other}, "mqar");
  refused({"mqar", "--out", other, "--set", "lenght=3"}, "length");
  refused({"mqar", "--out", other, "--set", "length=7"}, "even");
  CHECK_FALSE(std::filesystem::exists(other));
}
