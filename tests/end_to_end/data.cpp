// attnbench data: the examples of a training as files.
#include <sstream>

#include "core/arrays/npy.hpp"
#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

TEST_CASE("the data of a training can be had", "[train]") {
  const TemporaryFolder folder;
  const std::string out = folder / "data";
  const Finished done = call(
      "data mqar --set length=16 --set pairs=2 --set vocabulary=64 --set train_examples=20 "
      "--set test_examples=5 --set validation_examples=3 --out " +
      out);
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
  const std::string other = folder / "other";
  for (const auto& [line, why] :
       std::map<std::string, std::string>{{"mqar --out " + out, "holds files already"},
                                          {"kernel --out " + other, "learns from nothing"},
                                          {"mqr --out " + other, "mqar"},
                                          {"mqar --set lenght=3 --out " + other, "length"},
                                          {"mqar --set length=7 --out " + other, "even"}}) {
    const Finished bad = call("data " + line);
    INFO(bad.err);
    CHECK(bad.exit_code == 2);
    CHECK_THAT(bad.err, Contains(why));
  }
  CHECK_FALSE(std::filesystem::exists(other));
}

TEST_CASE("the data of a training are exported as arrays", "[train]") {
  const TemporaryFolder folder;
  const std::string data = "mqar --set length=16 --set pairs=2 --set vocabulary=64 ";
  const std::string out = folder / "arrays";
  const Finished done = call("data " + data +
                             "--set train_examples=20 --set test_examples=5 "
                             "--set validation_examples=3 --export " +
                             out);
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK_THAT(done.out, Contains("train.tokens.npy") && Contains("20"));
  CHECK(attnbench::arrays::open_array(out + "/train.tokens.npy").shape ==
        attnbench::arrays::Shape{20, 16});
  CHECK_FALSE(std::filesystem::exists(out + "/lines"));

  const std::string other = folder / "other";
  for (const auto& [line, why] : std::map<std::string, std::string>{
           {"mqar --export " + out, "--export " + out + " holds files already"},
           {"mqar --out " + other + " --export " + other, "name one of them"},
           {"mqar --as published --export " + other, "no published form"},
           {"mqar --data " + out + " --export " + other, "lra.listops"},
           {"mqar --as arrays --out " + other, "--export DIR"},
           {"mqar", "--export"}}) {
    const Finished bad = call("data " + line);
    INFO(bad.err);
    CHECK(bad.exit_code == 2);
    CHECK_THAT(bad.err, Contains(why));
  }
  CHECK_FALSE(std::filesystem::exists(other));
}
