#include "harness/program/run/supervise/progress.hpp"

#include <cstdlib>
#include <functional>
#include <sstream>

#include "core/failure.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::run;
using attnbench::Status;
using attnbench::result::RoundRecord;
using Catch::Matchers::Contains;

namespace {

RoundRecord ok_round(bool disturbed = false) {
  RoundRecord round;
  round.status = Status::ok;
  round.measured.timing["forward"].median_seconds = 0.0123;
  round.measured.timing["forward"].disturbed = disturbed;
  return round;
}

/// What `tell` leaves on a stream that is a file, of a run of four rounds.
std::string written(ProgressStyle style, const std::function<void(Progress&)>& tell,
                    double silent_seconds = 60) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  {
    Progress progress(style, 4, stream, silent_seconds);
    tell(progress);
  }
  std::fclose(stream);
  const std::string out(text, size);
  std::free(text);
  return out;
}

/// Two cells in two rounds, the second crashing at once.
void two_cells(Progress& progress) {
  progress.begin("a", "latte length=8", 0);
  progress.event({{"type", "heartbeat"}, {"elapsed_seconds", 1}});
  progress.end(ok_round());
  progress.begin("b", "softmax length=8", 0);
  RoundRecord crashed;
  crashed.status = Status::crashed;
  crashed.reason = "signal 11";
  progress.end(crashed, 1);
  progress.say("a note");
  progress.begin("a", "latte length=8", 1);
  progress.end(ok_round());
}

}  // namespace

TEST_CASE("a rate has the unit in which it is more than a fraction", "[progress]") {
  CHECK(rate_text(0.4) == "2.5/s");
  CHECK(rate_text(15) == "4.0/min");
  CHECK(rate_text(60) == "1.0/min");
  CHECK(rate_text(3000) == "1.2/h");
}

TEST_CASE("plain progress is lines: a cell's first round, and all that is not well", "[progress]") {
  for (const ProgressStyle style : {ProgressStyle::plain, ProgressStyle::automatic}) {
    CHECK(written(style, two_cells) ==
          "[1/4] latte length=8  forward 12.3 ms\n"
          "[2/3] softmax length=8  crashed: signal 11\n"
          "a note\n");
  }
  // It is not silent for long.
  const auto slow = [](Progress& progress) {
    progress.begin("a", "latte length=8", 1);
    progress.event({{"type", "heartbeat"}, {"elapsed_seconds", 42}});
    progress.event({{"type", "progress"}, {"what", "epoch"}, {"done", 1}, {"total", 4}});
    progress.show("waiting for a quiet machine");
    progress.end(ok_round());
  };
  CHECK(written(ProgressStyle::plain, slow, 1000).empty());
  CHECK_THAT(written(ProgressStyle::plain, slow, 0),
             Contains("[1/4] latte length=8  0:42\n") && Contains("epoch 25 %\n") &&
                 Contains("waiting for a quiet machine") && Contains("round 2 done"));
}

TEST_CASE("progress in JSON is one object a line", "[progress]") {
  std::istringstream lines(written(ProgressStyle::json, two_cells));
  std::vector<Json> messages;
  for (std::string line; std::getline(lines, line);) messages.push_back(Json::parse(line));
  REQUIRE(messages.size() == 8);
  CHECK(messages[0].at("type") == "begin");
  CHECK(messages[1].at("type") == "heartbeat");
  CHECK(messages[4].at("status") == "crashed");
  CHECK(messages[4].at("total") == 3);
  CHECK(messages[5].at("text") == "a note");
  CHECK(messages[7].at("done") == 3);
  CHECK(progress_style_from("auto") == ProgressStyle::automatic);
  CHECK_THROWS_AS(progress_style_from("loud"), attnbench::UsageFailure);
}

TEST_CASE("a disturbed round says so, once for each cell", "[progress]") {
  const auto three_rounds = [](Progress& progress) {
    for (const bool disturbed : {false, true, true}) {
      progress.begin("a", "latte length=8", 0);
      progress.end(ok_round(disturbed));
    }
  };
  const std::string text = written(ProgressStyle::plain, three_rounds);
  const std::string words =
      "latte length=8  forward least 12.3 ms, disturbed: other processes took the "
      "CPU\n";
  CHECK_THAT(text,
             Contains("[1/4] latte length=8  forward 12.3 ms\n") && Contains("[2/4] " + words));
  CHECK_THAT(written(ProgressStyle::json, three_rounds), Contains("\"disturbed\":true"));
}
