// Trainings as a user runs them: once each, gone on with after a kill, their data written out.
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
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
  struct Mechanisms {
    Json entries;
  };

  explicit School(const Json& more = Json::object())
      : School(Mechanisms{{{"latte", Json::object()}}}, more) {}
  School(const Mechanisms& mechanisms, const Json& more) {
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
    write_file(
        suite(),
        Json{{"name", "school"}, {"task", "mqar"}, {"set", set}, {"mechanisms", mechanisms.entries}}
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
  Json cell() const { return result().at("cells").at(0); }
  Json result() const {
    return Json::parse(read_file(run_folder() + "/result.json")).at("attnbench");
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
    for (const char* flag : {"--no-ceilings", "--no-report", "--progress", "plain"}) {
      words.emplace_back(flag);
    }
    if (std::find(more.begin(), more.end(), "--threads") == more.end()) {
      words.insert(words.end(), {"--threads", "2"});
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

namespace {

const Json no_clipping = {{"clip", 0}};
const Json three = {{"latte", Json::object()},
                    {"linear", Json::object()},
                    {"broken", {{"use", "softmax"}, {"learning_rate", 1e30}}}};

std::map<std::string, Json> cells_of(const School& school) {
  std::map<std::string, Json> cells;
  const Json result = school.result();
  for (const Json& cell : result.at("cells")) cells[cell.at("label")] = cell;
  return cells;
}

}  // namespace

TEST_CASE("trainings side by side have the bits of trainings alone with as many threads",
          "[train]") {
  const School alone(School::Mechanisms{three}, no_clipping);
  run(alone.command({"--threads", "1"}), 120, School::environment());
  const School beside(School::Mechanisms{three}, no_clipping);
  const Finished done = run(beside.command({"--jobs", "2"}), 120, School::environment());
  INFO(done.err);
  CHECK(done.exit_code == 5);  // a loss that is no number costs its own cell
  CHECK_THAT(done.err, Contains("2 trainings at a time, 1 thread each") && Contains("[3/3]"));
  CHECK(beside.result().at("run").at("jobs") == 2);
  auto want = cells_of(alone);
  auto got = cells_of(beside);
  for (const char* label : {"latte", "linear"}) {
    INFO(label);
    CHECK(got[label]["training"]["weights_hash"] == want[label]["training"]["weights_hash"]);
    CHECK(got[label]["side_by_side"] == Json{{"jobs", 2}, {"threads", 1}});
  }
  CHECK(got["broken"]["status"] == "error");
  CHECK_FALSE(want["latte"].contains("side_by_side"));
}

TEST_CASE("Ctrl-C ends all trainings, and they go on to the same bits", "[train]") {
  const Json two = {{"latte", Json::object()}, {"linear", Json::object()}};
  const Json longer = {{"epochs", 20}};  // so that neither is over before the other has begun
  const School unbroken(School::Mechanisms{two}, longer);
  REQUIRE(run(unbroken.command({"--jobs", "2"}), 120, School::environment()).exit_code == 0);
  const School broken(School::Mechanisms{two}, longer);
  {
    Running at_work(broken.command({"--jobs", "2"}), broken / "output", School::environment());
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
  const Finished last = run(broken.resume(), 120, School::environment());
  INFO(last.err);
  REQUIRE(last.exit_code == 0);
  CHECK(broken.result().at("run").at("jobs") == 2);  // as it was begun
  auto want = cells_of(unbroken);
  int resumed = 0;
  for (const auto& [label, cell] : cells_of(broken)) {
    INFO(label);
    CHECK(cell["training"]["weights_hash"] == want[label]["training"]["weights_hash"]);
    CHECK_FALSE(cell["training"].contains("checkpoint_notes"));
    resumed += cell["training"].contains("resumed_from_step");
  }
  CHECK(resumed == 2);
}

namespace {

/// One that nobody listens at, a moment ago.
int free_port() {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = bind(descriptor, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(descriptor);
  return bound ? ntohs(address.sin_port) : 29771;
}

std::map<std::string, std::string> seat(int rank, int port) {
  auto variables = School::environment();
  variables["RANK"] = std::to_string(rank);
  variables["WORLD_SIZE"] = "2";
  variables["MASTER_ADDR"] = "127.0.0.1";
  variables["MASTER_PORT"] = std::to_string(port);
  return variables;
}

}  // namespace

TEST_CASE("two processes learn what one learns from the joined batches", "[train]") {
  // In float64, so that sums in another order stay close. The last batch of an epoch is a single
  // example, of which one process has no share.
  const Json set = {{"dtype", "float64"}, {"train_examples", 41}, {"epochs", 4}};
  const School one(set);
  REQUIRE(run(one.command(), 120, School::environment()).exit_code == 0);
  const School two(set);
  const int port = free_port();
  Running second(two.command(), two / "output", seat(1, port));
  const Finished first = run(two.command(), 120, seat(0, port));
  const int second_code = second.wait(60);
  INFO(first.err << "\n" << read_file(two / "output"));
  const Json cell = two.cell();
  if (cell["status"] == "error") {
    CHECK_THAT(cell["reason"].get<std::string>(), Contains("built without c10d's Gloo"));
    WARN("not tried: " << cell["reason"].get<std::string>());
    return;
  }
  REQUIRE(first.exit_code == 0);
  CHECK(second_code == 0);
  CHECK(cell["training"]["processes"] == 2);
  const Json curve = cell["training"]["curve"];
  const Json want = one.cell()["training"]["curve"];
  REQUIRE(curve.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    for (const char* column : {"loss", "validation_loss", "train_accuracy"}) {
      INFO(column << " of epoch " << i + 1);
      CHECK(curve[i][column].get<double>() == Approx(want[i][column].get<double>()).epsilon(1e-9));
    }
  }
  const Json other = Json::parse(read_file(two.run_folder() + ".process_1/result.json"))
                         .at("attnbench")
                         .at("cells")
                         .at(0);
  CHECK(other["training"]["weights_hash"] == cell["training"]["weights_hash"]);
}

TEST_CASE("what cannot be done by several processes is refused", "[train]") {
  const School school;
  const auto refused = [&](const std::vector<std::string>& command,
                           std::map<std::string, std::string> variables, const char* why) {
    const Finished bad = run(command, 60, variables);
    INFO(bad.err);
    CHECK(bad.exit_code == 2);
    CHECK_THAT(bad.err, Contains(why));
  };
  refused({program(), "run", school.suite()}, seat(1, 29500), "--out");
  refused(school.command({"--jobs", "2"}), seat(0, 29500), "choose");
  refused({program(), "run", "softmax", "--out", school / "timed"}, seat(0, 29500), "is timed");
  auto wrong = seat(0, 29500);
  wrong["RANK"] = "7";
  refused(school.command(), wrong, "RANK=7");
}
