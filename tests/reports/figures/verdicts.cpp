#include "reports/figures/verdicts.hpp"

#include "reports/report.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

Json verdicts() {
  return {{"schema", 1},
          {"turns", {{"base", "a|b"}, {"new", "c<d"}, {"margin", 0.03}, {"confidence", 0.95}}},
          {"pairs",
           {{{"id", "1"},
             {"name", "kernel length=256"},
             {"timing", "forward"},
             {"verdict", "UNCLEAR"},
             {"reason", "6 of 10 rounds were preempted: repeat on a quiet machine"},
             {"rounds", 10},
             {"rounds_left_out", 6},
             {"base", {{"median_seconds", 8e-3}}},
             {"new", {{"median_seconds", 8e-3}}}},
            {{"id", "2"},
             {"name", "kernel length=512"},
             {"timing", "forward"},
             {"verdict", "FAST"},
             {"rounds", 12},
             {"rounds_left_out", 0},
             {"base", {{"median_seconds", 2e-3}}},
             {"new", {{"median_seconds", 1e-3}}},
             {"ratio", 0.5},
             {"ratio_low", 0.49},
             {"ratio_high", 0.51}}}}};
}

}  // namespace

TEST_CASE("verdicts stand on the page and in the tables of ab's run", "[reports]") {
  const test::TemporaryFolder folder;
  const auto fixture = test::source_folder() + "/tests/reports/fixture.json";
  test::write_file(folder / "result.json", test::read_file(fixture));
  test::write_file(folder / "ab.json", verdicts().dump());
  reports::ReportOptions options;
  options.render = false;
  options.out = folder / "out";
  reports::write_report({folder.path()}, options);
  const std::string page = test::read_file(folder / "out/index.html");
  CHECK_THAT(page, Catch::Contains("<h2 id=\"verdicts-0\">Verdicts</h2>") &&
                       Catch::Contains("c&lt;d compared with") &&
                       Catch::Contains("Left out: 6 of 22 rounds") &&
                       Catch::Contains("6 of 10 rounds were preempted") &&
                       Catch::Contains("0.500 [0.490, 0.510]") &&
                       Catch::Contains("4, and 6 disturbed"));
  const std::string markdown = test::read_file(folder / "out/tables/result.md");
  CHECK_THAT(markdown,
             Catch::Contains("c<d compared with a\\|b") || Catch::Contains("compared with a\\|b"));
  CHECK_THAT(markdown, Catch::Contains("| kernel length=512 forward | FAST | 0.500"));
  // A file of the same name that is something else costs a message.
  for (const char* other : {"{", "[]", "{\"turns\": 1}", "{\"turns\": {}, \"pairs\": 3}"}) {
    test::write_file(folder / "ab.json", other);
    const auto report = reports::write_report({folder.path()}, options);
    INFO(other);
    CHECK(std::any_of(report.messages.begin(), report.messages.end(), [](const auto& message) {
      return message.find("verdicts left out: ") == 0;
    }));
    CHECK_THAT(test::read_file(folder / "out/index.html"), !Catch::Contains(">Verdicts</h2>"));
  }
}

TEST_CASE("a run without verdicts has no table of them", "[reports]") {
  std::vector<std::string> messages;
  const test::TemporaryFolder folder;
  CHECK(!reports::verdicts_beside(folder.path(), messages));
  CHECK(messages.empty());
  CHECK(reports::verdicts_html({}).empty());
  CHECK(reports::verdicts_markdown({}).empty());
}
