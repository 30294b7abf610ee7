#include "harness/run/supervise/progress.hpp"

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/failure.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::run;
using Catch::Matchers::Contains;

namespace {

const Json ok = {{"status", "ok"},
                 {"measured", {{"timing", {{"forward", {{"median_seconds", 0.0123}}}}}}}};
const Json crashed = {{"status", "crashed"}, {"reason", "signal 11"}};

/// What two cells in two rounds, the second crashing at once, leave on a stream that is a file.
std::string written(ProgressStyle style) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* stream = open_memstream(&text, &size);
  {
    Progress progress(style, 4, stream);
    progress.begin("a", "latte length=8", 0);
    progress.event({{"type", "heartbeat"}, {"elapsed_seconds", 1}});
    progress.end(ok.get<attnbench::result::RoundRecord>());
    progress.begin("b", "softmax length=8", 0);
    progress.end(crashed.get<attnbench::result::RoundRecord>(), 1);
    progress.say("a note");
    progress.begin("a", "latte length=8", 1);
    progress.end(ok.get<attnbench::result::RoundRecord>());
  }
  std::fclose(stream);
  const std::string out(text, size);
  std::free(text);
  return out;
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
    CHECK(written(style) ==
          "[1/4] latte length=8  forward 12.3 ms\n"
          "[2/3] softmax length=8  crashed: signal 11\n"
          "a note\n");
  }
}

TEST_CASE("progress in JSON is one object a line", "[progress]") {
  std::istringstream lines(written(ProgressStyle::json));
  std::vector<Json> messages;
  for (std::string line; std::getline(lines, line);) messages.push_back(Json::parse(line));
  REQUIRE(messages.size() == 8);
  CHECK(messages[0].at("type") == "begin");
  CHECK(messages[1].at("type") == "heartbeat");
  CHECK(messages[4].at("status") == "crashed");
  CHECK(messages[4].at("total") == 3);
  CHECK(messages[5].at("text") == "a note");
  CHECK(messages[7].at("done") == 3);
}

TEST_CASE("styles are words", "[progress]") {
  CHECK(progress_style_from("auto") == ProgressStyle::automatic);
  CHECK_THROWS_AS(progress_style_from("loud"), attnbench::UsageFailure);
}

TEST_CASE("a disturbed round says so, once for each cell", "[progress]") {
  Json disturbed = ok;
  disturbed["measured"]["timing"]["forward"]["disturbed"] = true;
  const auto told = [&](ProgressStyle style) {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* stream = open_memstream(&text, &size);
    {
      Progress progress(style, 3, stream);
      for (const Json& record : {ok, disturbed, disturbed}) {
        progress.begin("a", "latte length=8", 0);
        progress.end(record.get<attnbench::result::RoundRecord>());
      }
    }
    std::fclose(stream);
    const std::string out(text, size);
    std::free(text);
    return out;
  };
  CHECK_THAT(told(ProgressStyle::plain),
             Contains("[1/3] latte length=8  forward 12.3 ms\n") &&
                 Contains("[2/3] latte length=8  forward 12.3 ms, disturbed: other processes took "
                          "the CPU\n"));
  CHECK_THAT(told(ProgressStyle::json), Contains("\"disturbed\":true"));
}

TEST_CASE("plain progress is not silent for long", "[progress]") {
  for (const double silent : {0.0, 1000.0}) {
    char* text = nullptr;
    std::size_t size = 0;
    std::FILE* stream = open_memstream(&text, &size);
    {
      Progress progress(ProgressStyle::plain, 4, stream, silent);
      progress.begin("a", "latte length=8", 1);
      progress.event({{"type", "heartbeat"}, {"elapsed_seconds", 42}});
      progress.event({{"type", "progress"}, {"what", "epoch"}, {"done", 1}, {"total", 4}});
      progress.show("waiting for a quiet machine");
      progress.end(ok);
    }
    std::fclose(stream);
    const std::string out(text, size);
    std::free(text);
    if (silent > 0) {
      CHECK(out.empty());
      continue;
    }
    CHECK_THAT(out, Contains("[1/4] latte length=8  0:42\n") && Contains("epoch 25 %\n") &&
                        Contains("waiting for a quiet machine") && Contains("round 2 done"));
  }
}
