// Classification of prepared rows as a user runs it: by steps, killed and resumed, and what cannot
// be trained.
#include <signal.h>

#include <fstream>
#include <iterator>

#include "tests/program/training_suite.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/stored_result.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

/// A suite of short ListOps rows, and the data for it.
class ListOpsSuite {
 public:
  explicit ListOpsSuite(const Json& more = Json::object(),
                        const Json& mechanisms = {{"softmax", Json::object()}}) {
    Json set = {{"length_minimum", 10},
                {"length_maximum", 60},
                {"depth", 5},
                {"length", 64},
                {"train_examples", 2000},
                {"validation_examples", 200},
                {"test_examples", 200},
                {"width", 64},
                {"heads", 2},
                {"positions", "learned"},
                {"batch", 32},
                {"steps", 20},
                {"evaluate_every", 5},
                {"dropout", 0.1},
                {"embedding_dropout", 0.1},
                {"learning_rate", 0.003},
                {"checkpoint_seconds", 0}};
    set.update(more);
    write_file(
        folder_ / "suite.json",
        Json{{"name", "listops"}, {"task", "lra.listops"}, {"set", set}, {"mechanisms", mechanisms}}
            .dump(1));
  }

  void prepare() const {
    const Finished done =
        run({program(), "data", "lra.listops", "--set", "length_minimum=10", "--set",
             "length_maximum=60", "--set", "depth=5", "--set", "train_examples=2000", "--set",
             "validation_examples=200", "--set", "test_examples=200", "--out", folder_ / "data"},
            120);
    INFO(done.err);
    REQUIRE(done.exit_code == 0);
  }

  std::vector<std::string> command() const {
    return with({program(), "run", folder_ / "suite.json", "--out", folder_ / "run"});
  }
  std::vector<std::string> resume() const {
    return with({program(), "run", "--resume", folder_ / "run"});
  }
  Json cells() const {
    return stored_result(folder_ / "run/result.json").at("attnbench").at("cells");
  }
  fs::path operator/(const std::string& name) const { return folder_ / name; }

  /// The content of the training's checkpoint; may be empty, since a save renames two files.
  std::string checkpoint() const {
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder_ / "run/checkpoints", none)) {
      std::ifstream in(entry.path() / "checkpoint.pt", std::ios::binary);
      return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    }
    return "";
  }

 private:
  std::vector<std::string> with(std::vector<std::string> words) const {
    for (const char* flag :
         {"--no-ceilings", "--no-report", "--progress", "plain", "--threads", "2", "--data"}) {
      words.emplace_back(flag);
    }
    words.push_back(folder_ / "data");
    return words;
  }

  TemporaryFolder folder_;
};

}  // namespace

TEST_CASE("classes are learned by steps, and the record tells what each rule selects",
          "[train][lra]") {
  const ListOpsSuite suite;
  suite.prepare();
  const Finished done = run(suite.command(), 120, TrainingSuite::environment());
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK_THAT(done.out,
             Contains("rule that selects the weights") && Contains("most frequent class"));
  const Json cell = suite.cells().at(0);
  CHECK(was_measured(cell));
  const Json& training = cell["training"];
  CHECK(training["steps"] == 20);
  CHECK(training["stopped"] == "steps");
  REQUIRE(training["curve"].size() == 4);
  CHECK(training["curve"][1]["step"] == 10);
  CHECK(training["curve"][3]["epoch"].get<double>() == Approx(20.0 / 63));  // 2000 rows by 32
  CHECK(training["selection"]["keep"] == "best_validation");
  CHECK(training["selection"]["last"]["step"] == 20);
  CHECK(training["selection"]["last"].contains("test_accuracy"));
  CHECK_FALSE(training.contains("look_back"));
  CHECK(training["data"]["splits"]["train"]["rows"] == 2000);
  CHECK(training["guess"] == training["data"]["splits"]["test"]["majority"]);
  int examples = 0;
  int right = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    for (const Json& count : training["confusion"].at(i)) examples += count.get<int>();
    right += training["confusion"][i][i].get<int>();
  }
  CHECK(examples == 200);
  CHECK(right / 200.0 == Approx(cell["metrics"]["accuracy"].get<double>()));
}

TEST_CASE("a classification killed and resumed gives the weights of an unbroken one",
          "[train][lra]") {
  const ListOpsSuite unbroken;
  unbroken.prepare();
  REQUIRE(run(unbroken.command(), 120, TrainingSuite::environment()).exit_code == 0);
  const Json want = unbroken.cells().at(0)["training"];

  const ListOpsSuite broken;
  broken.prepare();
  {
    Running at_work(broken.command(), broken / "output", TrainingSuite::environment());
    std::string first;
    REQUIRE(wait_until([&] { return !(first = broken.checkpoint()).empty(); }));
    // Not at its first step, where nothing would have been kept.
    wait_until([&] {
      const std::string now = broken.checkpoint();
      return !now.empty() && now != first;
    });
    const pid_t child = child_of(at_work);
    at_work.signal(SIGKILL);
    at_work.wait(10);
    REQUIRE(wait_until([&] { return !alive(child); }));
  }
  const Finished last = run(broken.resume(), 120, TrainingSuite::environment());
  INFO(last.err);
  REQUIRE(last.exit_code == 0);
  const Json cell = broken.cells().at(0);
  const Json& training = cell["training"];
  CHECK(training["weights_hash"] == want["weights_hash"]);
  CHECK(training["curve"] == want["curve"]);
  CHECK(training["selection"] == want["selection"]);
  CHECK(training["confusion"] == want["confusion"]);
  CHECK(training["resumed_from_step"].get<int>() > 0);
}

TEST_CASE("what has no bidirectional form, or too few positions, is unsupported with the reason",
          "[lra]") {
  const ListOpsSuite suite(Json::object(),
                           {{"gla", Json::object()}, {"linformer", {{"max_length", 32}}}});
  suite.prepare();
  const Finished done = run(suite.command(), 120, TrainingSuite::environment());
  INFO(done.err);
  CHECK(done.exit_code == 2);  // nothing can be measured
  std::map<std::string, std::string> reasons;
  for (const Json& cell : suite.cells()) {
    CHECK(cell["status"] == "unsupported");
    reasons[cell["label"]] = cell["reason"];
  }
  CHECK_THAT(reasons["gla"], Contains("bidirectional"));
  CHECK_THAT(reasons["linformer"], Contains("64 keys") && Contains("max_length, now 32"));
}

TEST_CASE("a length below the longest row is refused unless rows may be cut", "[lra]") {
  const ListOpsSuite suite(Json{{"length", 32}});
  suite.prepare();
  const Finished refused = run(suite.command(), 120, TrainingSuite::environment());
  INFO(refused.err);
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err + refused.out, Contains("length is 32") && Contains("truncate"));
  CHECK_FALSE(fs::exists(suite / "run/result.json"));
  const ListOpsSuite cut(Json{{"length", 32}, {"truncate", true}});
  cut.prepare();
  CHECK(run(cut.command(), 120, TrainingSuite::environment()).exit_code == 0);
}

TEST_CASE("cells whose data are damaged are skipped with the file and what to do", "[lra]") {
  const ListOpsSuite suite;
  suite.prepare();
  for (const auto& entry : fs::directory_iterator(suite / "data")) {
    const std::string whole = read_file(entry.path());
    write_file(entry.path(), whole.substr(0, whole.size() / 2));
  }
  const Finished done = run(suite.command(), 120, TrainingSuite::environment());
  INFO(done.err);
  CHECK(done.exit_code == 3);
  const Json cell = suite.cells().at(0);
  CHECK(cell["status"] == "skipped");
  CHECK_THAT(cell["reason"].get<std::string>(),
             Contains(".prepared") && Contains("attnbench data lra.listops"));
}
