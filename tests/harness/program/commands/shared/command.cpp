#include "harness/program/commands/shared/command.hpp"

#include <iostream>
#include <sstream>

#include "tests/support/catch.hpp"

using namespace attnbench::commands;
using Catch::Contains;

namespace {

/// A command with an option of each kind, called with these words.
struct Called {
  std::string text;
  int number = 7;
  std::int64_t tokens = 7;
  std::uint64_t seed = 7;
  double share = 0.5;
  double seconds = 5;
  int code = -1;
  std::string complaint;

  explicit Called(std::vector<std::string> words) {
    CommandLine line(
        "a program", [] { return std::string("1"); }, "");
    Command& command = line.add("measure", "Measure");
    command.option("--text", text, "a text");
    command.option("--number", number, "a number").within(1, 256);
    command.option("--tokens", tokens, "tokens");
    command.option("--seed", seed, "a seed");
    command.option("--share", share, "a share").within(0.0, 1.0);
    command.option("--seconds", seconds, "seconds").positive_seconds();
    command.runs([] { return 0; });
    words.insert(words.begin(), {"attnbench", "measure"});
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    std::ostringstream complaints;
    std::streambuf* const before = std::cerr.rdbuf(complaints.rdbuf());
    code = line.run(static_cast<int>(arguments.size()), arguments.data());
    std::cerr.rdbuf(before);
    complaint = complaints.str();
  }
};

}  // namespace

TEST_CASE("options take numbers up to the ends of their ranges", "[command]") {
  const Called called({"--number", "256", "--tokens", "9223372036854775807", "--seed",
                       "18446744073709551615", "--share=1e-3", "--seconds", "1e9", "--text", "a"});
  INFO(called.complaint);
  CHECK(called.code == 0);
  CHECK(called.number == 256);
  CHECK(called.tokens == 9223372036854775807);
  CHECK(called.seed == 18446744073709551615u);
  CHECK(called.share == 1e-3);
  CHECK(called.seconds == 1e9);
}

TEST_CASE("options refuse what is no number of theirs, and say which would do", "[command]") {
  const std::string whole = "a whole number from ", seconds = "above 0, at most 1000000000";
  for (const auto& [flag, value, expected] : std::vector<std::array<std::string, 3>>{
           {"--number", "0", "a number from 1 to 256"},
           {"--number", "257", "a number from 1 to 256"},
           {"--number", "nan", whole + "-2147483648 to 2147483647"},
           {"--number", "2.5", whole + "-2147483648 to 2147483647"},
           {"--number", "99999999999", whole + "-2147483648 to 2147483647"},
           {"--tokens", "9223372036854775808", "9223372036854775807"},
           {"--tokens", "12 ", whole},
           {"--seed", "-1", whole + "0 to 18446744073709551615"},
           {"--seed", "18446744073709551616", whole + "0 to 18446744073709551615"},
           {"--share", "1.5", "a number from 0 to 1"},
           {"--share", "nan", "a finite number"},
           {"--share", "inf", "a finite number"},
           {"--share", "1e999", "a finite number"},
           {"--share", "half", "a finite number"},
           {"--seconds", "0", seconds},
           {"--seconds", "1e300", seconds},
           {"--text", "", "expected a text, found an empty one"}}) {
    const Called called({flag, value});
    INFO(flag << " " << value << "\n" << called.complaint);
    CHECK(called.code == 2);
    CHECK_THAT(called.complaint, Contains(flag) && Contains(expected));
    CHECK(called.complaint.size() < 300);
  }
}
