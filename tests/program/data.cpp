// attnbench data: the examples of a training as files.
#include <sstream>

#include "tests/program/training_suite.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

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
  const Finished done = run(command, 60, TrainingSuite::environment());
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
    const Finished bad = run(words, 60, TrainingSuite::environment());
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
