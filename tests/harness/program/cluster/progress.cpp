#include "harness/program/cluster/progress.hpp"

#include <nlohmann/json.hpp>

#include "core/process/limits.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using cluster::Queue;
using cluster::ShardProgress;
using cluster::Submission;
using cluster::SubmissionFolder;
using Json = nlohmann::json;

namespace {

/// One shard of two cells with two rounds each, and a third that will not run.
Submission small_submission() {
  Submission submission;
  submission.jobs = 1;
  submission.cells = {{"a", 2}, {"b", 2}, {"never", 0}};
  return submission;
}

std::string round_line(const std::string& cell, int round, const char* status = "ok") {
  const Json line = {{"type", "record"}, {"cell", cell},      {"round", round},
                     {"status", status}, {"wall_seconds", 3}, {"measured", Json::object()}};
  return line.dump() + "\n";
}

class Shard {
 public:
  Shard() { std::filesystem::create_directories(folder().shard(1)); }
  SubmissionFolder folder() const { return {home_.path()}; }
  void journal(const std::string& rounds) const {
    const Json header = {{"type", "header"},          {"schema", 1},
                         {"suite", Json::object()},   {"cells", Json::array()},
                         {"measure", Json::object()}, {"identity", Json::object()}};
    test::write_file(folder().shard(1) / "journal.jsonl", header.dump() + "\n" + rounds);
  }
  void result(const std::string& state) const {
    result::Result whole =
        test::result_of({test::CellBuilder("a"), test::CellBuilder("b").ended(Status::disturbed),
                         test::CellBuilder("never")});
    whole.run.state = state;
    result::write_result(folder().shard(1) / "result.json", whole);
  }
  ShardProgress progress(const std::optional<Queue>& queue = Queue{}) const {
    return cluster::progress_of(small_submission(), folder(), queue).at(0);
  }

 private:
  test::TemporaryFolder home_;
};

using Counts = std::map<std::string, std::size_t>;

}  // namespace

TEST_CASE("squeue's lines name shards; others are left out", "[cluster]") {
  const Queue queue = cluster::queue_from(
      "12_1|RUNNING|node7\n12_2|PENDING|(Resources)\n12_[3-4]|PENDING|(x)\n13|RUNNING|n\nwords\n");
  REQUIRE(queue.size() == 2);
  CHECK(queue.at(1).state == "RUNNING");
  CHECK(queue.at(1).reason == "node7");
  CHECK(queue.at(2).reason == "(Resources)");
}

TEST_CASE("a shard's state is the queue's, else what its folder shows", "[cluster]") {
  const Shard shard;
  CHECK(shard.progress().state == "not started");
  CHECK(shard.progress().cells == Counts{{"open", 2}, {"not to run", 1}});
  CHECK(shard.progress(Queue{{1, {"PENDING", "(Priority)"}}}).state == "pending");

  shard.journal(round_line("a", 0) + round_line("a", 1) + round_line("b", 0));
  CHECK(shard.progress().state == "killed");
  CHECK(shard.progress().cells == Counts{{"ok", 1}, {"open", 1}, {"not to run", 1}});
  const ShardProgress running = shard.progress(Queue{{1, {"RUNNING", "node7"}}});
  CHECK(running.state == "running");
  CHECK(running.rounds_done == 3);
  CHECK(running.rounds_left == 1);

  shard.result("interrupted");
  CHECK(shard.progress().state == "interrupted");
  CHECK(cluster::unfinished({shard.progress()}, {}) == std::vector<int>{1});
  // Requeued: the result is of the start before.
  CHECK(shard.progress(Queue{{1, {"RUNNING", "node7"}}}).state == "running");

  shard.journal(round_line("a", 0) + round_line("a", 1) + round_line("b", 0) + round_line("b", 1));
  CHECK(shard.progress().state == "interrupted");  // it has not written its result yet
  shard.result("complete");
  CHECK(shard.progress().state == "finished");
  CHECK(shard.progress().cells == Counts{{"ok", 2}, {"disturbed", 1}});
  CHECK(cluster::unfinished({shard.progress()}, {}).empty());
  CHECK(cluster::unfinished({shard.progress()}, {"disturbed"}) == std::vector<int>{1});
}

TEST_CASE("a cell that failed has no rounds left", "[cluster]") {
  const Shard shard;
  shard.journal(round_line("a", 0, "crashed"));
  CHECK(shard.progress().cells == Counts{{"crashed", 1}, {"open", 1}, {"not to run", 1}});
  CHECK(shard.progress().rounds_left == 2);
}

TEST_CASE("a journal that is being written costs nothing but the count", "[cluster]") {
  const Shard shard;
  test::write_file(shard.folder().shard(1) / "journal.jsonl", "");
  CHECK(shard.progress(Queue{{1, {"RUNNING", "n"}}}).state == "running");
  CHECK(shard.progress().state == "killed");
}

TEST_CASE("the pace is that of the rounds so far", "[cluster]") {
  ShardProgress fast, slow, waiting;
  fast.state = slow.state = "running";
  waiting.state = "pending";
  fast.rounds_done = slow.rounds_done = 10;
  fast.seconds = 10;
  slow.seconds = 30;
  fast.rounds_left = slow.rounds_left = waiting.rounds_left = 5;
  const auto pace = cluster::pace_of({fast, slow, waiting});
  REQUIRE(pace);
  CHECK(pace->rounds_per_minute == Approx(60));  // 20 rounds in 40 s of two shards
  CHECK(pace->seconds_left == Approx(15));       // the slow one's
  CHECK_FALSE(cluster::pace_of({waiting}));
  slow.rounds_left = fast.rounds_left = 0;
  CHECK_FALSE(cluster::pace_of({fast, slow}));
}
