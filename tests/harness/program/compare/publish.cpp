#include "harness/program/compare/publish.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::compare;

namespace {

Pair told(SpeedVerdict verdict, const std::string& name, double ratio = 0) {
  Pair pair;
  pair.name = name;
  pair.verdict = verdict;
  if (ratio > 0) {
    pair.what = "forward";
    pair.base = Spread{0.01, 0.009, 0.011};
    pair.changed = Spread{0.01 * ratio, 0.009 * ratio, 0.011 * ratio};
    pair.ratio = ratio;
    pair.ratio_low = ratio * 0.99;
    pair.ratio_high = ratio * 1.01;
  }
  return pair;
}

Comparison some() {
  Comparison comparison;
  comparison.turns = Turns{"old", "new", 0.03, 0.998, 2, {}};
  comparison.pairs = {
      told(SpeedVerdict::same, "steady", 1.0), told(SpeedVerdict::slow, "slower", 1.1),
      told(SpeedVerdict::unclear, "a|b <script>", 1.02), told(SpeedVerdict::gone, "lost")};
  comparison.pairs[2].reason = "the interval goes across 1";
  comparison.pairs[3].reason = "the new side has no such cell";
  return comparison;
}

const Publication publication{
    "ab ci", "host, CPU, 2 threads; 12 rounds", {"base old"}, "attnbench ab"};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("Markdown begins with a marker and the verdict, and shows what moved first",
          "[compare][ab]") {
  const std::string text = to_markdown(some(), publication);
  CHECK_THAT(text,
             Catch::StartsWith("<!-- attnbench ab ci -->\n### attnbench ab ci: 1 SLOW, 1 SAME, "
                               "1 UNCLEAR, 1 GONE\n"));
  CHECK_THAT(text, Catch::Contains("| slower forward | SLOW | 1.100 [1.089, 1.111] | 10.0 ms |"));
  CHECK(text.find("slower forward") < text.find("a\\|b &lt;script&gt; forward"));
  CHECK(text.find("lost") < text.find("<details><summary>The same (1)</summary>"));
  CHECK_THAT(text, Catch::Contains("- host, CPU, 2 threads; 12 rounds\n- base old\n"));
  CHECK_THAT(text, Catch::Contains("```sh\nattnbench ab\n```"));
  CHECK(count_of(text, "<details>") == count_of(text, "</details>"));
}

TEST_CASE("Markdown of a description says first what it rests on", "[compare][ab]") {
  Comparison comparison = some();
  comparison.turns.reset();
  comparison.differences = {"seed: 1, then 2"};
  const std::string text = to_markdown(comparison, publication);
  CHECK_THAT(text,
             Catch::StartsWith("<!-- attnbench ab ci -->\nhost, CPU, 2 threads; 12 rounds\n"));
  CHECK_THAT(text,
             Catch::Contains("not a verdict") && Catch::Contains("- differs: seed: 1, then 2"));
}

TEST_CASE("Markdown has room in a comment, whatever the suite", "[compare][ab]") {
  Comparison comparison = some();
  for (int i = 0; i < 3000; ++i) {
    comparison.pairs.push_back(told(i % 2 == 0 ? SpeedVerdict::unclear : SpeedVerdict::same,
                                    std::string(400, 'x') + std::to_string(i), 1.0));
  }
  comparison.differences.assign(500, std::string(400, 'y'));
  Publication wordy = publication;
  wordy.command = std::string(100000, 'z');
  const std::string text = to_markdown(comparison, wordy);
  CHECK(text.size() <= max_markdown);
  CHECK(text.size() > max_markdown / 2);
  CHECK_THAT(text, Catch::Contains("more, which ab.json lists") && Catch::Contains("1 SLOW"));
  CHECK(count_of(text, "<details>") == count_of(text, "</details>"));
}

TEST_CASE("JUnit has a case for each pair", "[compare][ab]") {
  const std::string xml = to_junit(some(), publication);
  CHECK_THAT(xml, Catch::Contains("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"2\""));
  CHECK_THAT(xml, Catch::Contains("<failure message=\"SLOW 1.100 [1.089, 1.111]\"/>"));
  CHECK_THAT(xml, Catch::Contains("name=\"a|b &lt;script&gt; forward\""));
  CHECK_THAT(xml, Catch::Contains("<skipped message=\"GONE: the new side has no such cell\"/>"));
  CHECK(count_of(xml, "<testcase ") == count_of(xml, "</testcase>"));
}

TEST_CASE("several comparisons share a marker, the room and a list of tests", "[compare][ab]") {
  Publication other = publication;
  other.title = "ab decode";
  const std::vector<PublishedComparison> two{{some(), publication}, {some(), other}};
  const std::string text = to_markdown(two);
  CHECK_THAT(text, Catch::StartsWith("<!-- attnbench ab ci, ab decode -->\n### attnbench ab ci: "));
  CHECK(count_of(text, "<!--") == 1);
  CHECK_THAT(text, Catch::Contains("\n### attnbench ab decode: 1 SLOW"));
  CHECK(count_of(text, "| slower forward | SLOW") == 2);
  const std::string xml = to_junit(two);
  CHECK(count_of(xml, "<testsuites>") == 1);
  CHECK(count_of(xml, "<testsuite ") == 2);
  Comparison large = some();
  for (int i = 0; i < 3000; ++i) {
    large.pairs.push_back(
        told(SpeedVerdict::unclear, std::string(400, 'x') + std::to_string(i), 1.0));
  }
  const std::string full = to_markdown(std::vector<PublishedComparison>(8, {large, publication}));
  CHECK(full.size() <= max_markdown);
  CHECK(count_of(full, "more, which ab.json lists") == 8);
  CHECK(count_of(full, "<details>") == count_of(full, "</details>"));
}
