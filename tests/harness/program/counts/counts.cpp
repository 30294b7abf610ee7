#include "harness/program/counts/counts.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using counts::CountChange;
using counts::Counts;

namespace {

Counts some_counts() {
  Counts counts;
  counts.program = "attnbench-counts";
  counts.compiler = "GNU 12";
  counts.flags = "-O2";
  counts.instruction_set = "avx2";
  counts.instructions = {{"b", 2000000}, {"a", 1000000}};
  counts.workspace_bytes = {{"cell", 4096}};
  return counts;
}

std::string refusal_of(const std::string& text) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "counts.json", text);
  try {
    counts::read_counts(folder / "counts.json");
  } catch (const UsageFailure& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace

TEST_CASE("counts are written a line each, sorted, and read back", "[gate]") {
  const std::string text = counts::counts_text(some_counts());
  CHECK_THAT(text, Catch::Contains("  \"a\": 1000000,\n  \"b\": 2000000\n"));
  CHECK(refusal_of(text).empty());
  const test::TemporaryFolder folder;
  test::write_file(folder / "counts.json", text);
  CHECK(counts::counts_text(counts::read_counts(folder / "counts.json")) == text);
}

TEST_CASE("a file of counts that is damaged is refused", "[gate]") {
  const std::string text = counts::counts_text(some_counts());
  CHECK_FALSE(refusal_of(text.substr(0, text.size() / 2)).empty());
  std::string twice = text;
  twice.replace(twice.find("\"b\""), 3, "\"a\"");
  CHECK_THAT(refusal_of(twice), Catch::Contains("\"a\" is there twice"));
  std::string other = text;
  other.replace(other.find("\"version\": 1"), 12, "\"version\": 2");
  CHECK_THAT(refusal_of(other), Catch::Contains("/version: expected 1, found 2"));
  CHECK_FALSE(refusal_of("[]").empty());
  CHECK_FALSE(refusal_of("{}").empty());
  CHECK_THROWS_AS(counts::read_counts("no/such/file"), UsageFailure);
}

TEST_CASE("what grows, comes or goes fails, what shrinks is told", "[gate]") {
  const std::map<std::string, std::int64_t> stored{
      {"same", 1000000}, {"near", 1000000}, {"more", 1000000}, {"fewer", 1000000}, {"gone", 5}};
  const std::map<std::string, std::int64_t> now{
      {"same", 1000000}, {"near", 1000900}, {"more", 1080000}, {"fewer", 900000}, {"new", 7}};
  const auto findings = counts::findings_of(stored, now, counts::instructions_repeat_within);
  REQUIRE(findings.size() == 4);
  for (const CountChange& finding : findings) CHECK(finding.fails() == (finding.name != "fewer"));
  const auto more = std::find_if(findings.begin(), findings.end(),
                                 [](const CountChange& finding) { return finding.name == "more"; });
  REQUIRE(more != findings.end());
  CHECK(counts::finding_text(*more, "instructions") ==
        "more: 1000000 to 1080000 instructions (+8.00 %)");
  CHECK(counts::findings_of(stored, stored, 0).empty());
}

TEST_CASE("other compilers, flags and instruction sets do not compare", "[gate]") {
  const Counts stored = some_counts();
  CHECK(counts::not_comparable(stored, stored).empty());
  Counts other = stored;
  other.compiler = "Clang 15";
  CHECK_THAT(counts::not_comparable(stored, other),
             Catch::Contains("Clang 15 here, GNU 12 in the counts"));
  other = stored;
  other.flags = "-O3";
  CHECK_THAT(counts::not_comparable(stored, other), Catch::Contains("flags"));
  other = stored;
  other.instruction_set = "baseline";
  CHECK_THAT(counts::not_comparable(stored, other), Catch::Contains("instruction set"));
}

TEST_CASE("callgrind's line of what it collected is read", "[gate]") {
  CHECK(counts::collected_from("==12== Events    : Ir\n==12== Collected : 8123456\n") == 8123456);
  CHECK_THROWS_AS(counts::collected_from("==12== Collected : 0\n"), EnvironmentFailure);
  CHECK_THROWS_AS(counts::collected_from("nothing"), EnvironmentFailure);
  CHECK_THROWS_AS(counts::count_instructions("no/such/program"), EnvironmentFailure);
}
