#include "reports/figures/verdicts.hpp"

#include <algorithm>

#include "reports/report.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;

namespace {

/// As ab writes them beside its result.
const char* const verdicts_text = R"({
  "schema": 1, "turns": {"base": "a|b", "new": "c<d", "margin": 0.03, "confidence": 0.95},
  "pairs": [
    {"id": "1", "name": "kernel length=256", "timing": "forward", "verdict": "UNCLEAR",
     "reason": "6 of 10 rounds were preempted: repeat on a quiet machine", "rounds": 10,
     "rounds_left_out": 6, "base": {"median_seconds": 8e-3}, "new": {"median_seconds": 8e-3}},
    {"id": "2", "name": "kernel length=512", "timing": "forward", "verdict": "FAST", "rounds": 12,
     "rounds_left_out": 0, "base": {"median_seconds": 2e-3}, "new": {"median_seconds": 1e-3},
     "ratio": 0.5, "ratio_low": 0.49, "ratio_high": 0.51}]})";

}  // namespace

TEST_CASE("verdicts stand on the page and in the tables of ab's run, their forest first",
          "[reports]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "result.json", test::read_file(test::fixture_file()));
  test::write_file(folder / "ab.json", verdicts_text);
  reports::ReportOptions options;
  options.render = false;
  options.out = folder / "out";
  const auto report = reports::write_report({folder.path()}, options);
  REQUIRE_FALSE(report.figures.empty());
  CHECK(report.figures.front().filename() == "ab_ratios.vl.json");
  CHECK_THAT(test::read_file(report.figures.front()),
             Catch::Contains("Time of c<d over that of a|b"));
  CHECK_THAT(test::read_file(report.page), Catch::Contains("<h2 id=\"verdicts-0\">Verdicts</h2>") &&
                                               Catch::Contains("c&lt;d compared with") &&
                                               Catch::Contains("Left out: 6 of 22 rounds") &&
                                               Catch::Contains("6 of 10 rounds were preempted") &&
                                               Catch::Contains("0.500 [0.490, 0.510]") &&
                                               Catch::Contains("4, and 6 disturbed"));
  CHECK_THAT(test::read_file(folder / "out/tables/result.md"),
             Catch::Contains("compared with a\\|b") &&
                 Catch::Contains("| kernel length=512 forward | FAST | 0.500"));
  // A file of the same name that is something else costs a message.
  for (const char* other : {"{", "[]", "{\"turns\": 1}", "{\"turns\": {}, \"pairs\": 3}"}) {
    INFO(other);
    test::write_file(folder / "ab.json", other);
    const auto without = reports::write_report({folder.path()}, options);
    CHECK(std::any_of(without.messages.begin(), without.messages.end(), [](const auto& message) {
      return message.find("verdicts left out: ") == 0;
    }));
    CHECK_THAT(test::read_file(without.page), !Catch::Contains(">Verdicts</h2>"));
  }
  CHECK(reports::verdicts_html({}).empty());
  CHECK(reports::verdicts_markdown({}).empty());
}
