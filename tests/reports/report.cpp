#include "reports/report.hpp"

#include <cstdlib>

#include "core/failure.hpp"
#include "harness/program/compare/compare.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"
#include "tests/support/variable.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

/// An interpreter that does what the test says in shell; $2 is the folder of figures, $6 the
/// bundle.
class Interpreter {
 public:
  Interpreter(const test::TemporaryFolder& folder, const std::string& body)
      : variable_("ATTNBENCH_PYTHON", folder / "python") {
    test::write_file(folder / "python", "#!/bin/sh\n" + body + "\n");
    fs::permissions(folder / "python", fs::perms::owner_all);
  }

 private:
  test::Variable variable_;
};

reports::Report report_of(const std::vector<fs::path>& results, const fs::path& out,
                          bool render = false, bool force = false) {
  reports::ReportOptions options;
  options.out = out;
  options.render = render;
  options.force = force;
  return reports::write_report(results, options);
}
/// The report of the fixture, its pictures made as `body` says; without one by nobody.
reports::Report rendered_by(const std::string& body, const test::TemporaryFolder& folder) {
  const Interpreter interpreter(folder, body);
  if (body.empty()) setenv("ATTNBENCH_PYTHON", (folder / "nowhere").c_str(), 1);
  return report_of({test::fixture_file()}, folder / "out", true);
}

}  // namespace

TEST_CASE("results that were written earlier draw, read and compare as they are", "[reports]") {
  // As commit f85f8ff wrote them, samples cut to four a round.
  for (const std::string name : {"quickstart", "decode", "mqar_smoke"}) {
    INFO(name);
    const test::TemporaryFolder folder;
    const auto report = report_of({test::fixture_file("fixtures/" + name)}, folder / "out");
    CHECK(report.messages.empty());
    const result::Result result = test::fixture_result("fixtures/" + name);
    const std::string& title = *result.suite.title;
    CHECK_THAT(test::read_file(report.page),
               Contains(title.substr(0, title.find_first_of("<&>\"'"))));
    CHECK_THAT(compare::to_text(compare::compare(result, result, 0.03), 100, true),
               !Contains("SLOW"));
  }
}

TEST_CASE("the axes of the figure that a suite names, and of no other, are those of its report",
          "[reports]") {
  const test::TemporaryFolder folder;
  result::Result result = test::fixture_result();
  const auto figures_on = [&](const char* figure) {
    result.suite.further["figure"] = figure;
    result::write_result(folder / "result.json", result);
    reports::ReportOptions options;
    options.out = folder / "out";
    options.render = false;
    options.axes["latte_v1.figure_2"] = {"Latte v1, Figure 2", "its code", false, "ms", ""};
    std::size_t found = 0;
    for (const fs::path& file : reports::write_report({folder / "result.json"}, options).figures) {
      found += file.filename().string().find("_paper_time") != std::string::npos;
    }
    return found;
  };
  CHECK(figures_on("latte_v1.figure_2") > 0);
  CHECK(figures_on("latte_v1.figure_4") == 0);
}

TEST_CASE("a report without pictures has specifications, tables and a page", "[reports]") {
  const test::TemporaryFolder folder;
  result::Result result = test::fixture_result();
  result::DeviceCard card;
  card.name = "Example GPU";
  card.memory_bytes = 85899345920;
  card.driver = "NVIDIA 1.2";
  result.machine.devices["cuda"] = card;
  result.suite.published = test::source_folder() + "/tests/reports/fixture_published.csv";
  result::write_result(folder / "result.json", result);
  const auto report = report_of({folder / "result.json"}, folder / "out");
  CHECK(report.messages.empty());
  CHECK(report.page == folder / "out/index.html");
  CHECK(report.figures.size() == 12);
  for (const auto& figure : report.figures) {
    CHECK(Json::parse(test::read_file(figure)).contains("$schema"));
  }
  for (const char* name : {"result.md", "result.tex", "result.csv"}) {
    CHECK(fs::file_size(folder / "out/tables" / name) > 1000);
  }
  const std::string page = test::read_file(report.page);
  for (const char* part : {"Four mechanisms &lt;side by side&gt; &amp; a wrong one",
                           "out_of_memory", "still scanning &lt;token 7123&gt; &amp; counting",
                           "attnbench run suites/fixture.json --profile quick --threads 2",
                           "130 GFLOP/s", "the load of the machine was 1.4",
                           "Example GPU (cuda), Example CPU 3.0 GHz", "Device: cuda", "80.0 GiB"}) {
    CHECK_THAT(page, Contains(part));
  }
  CHECK_THAT(page, !Contains("vegaEmbed"));
}

TEST_CASE("the page asks nothing of the network, and has the pictures that were made",
          "[reports]") {
  const test::TemporaryFolder folder;
  const auto report = rendered_by(
      "for f in $2/*.vl.json; do echo '<?xml?><svg>drawn</svg>' > ${f%.vl.json}.svg; done\n"
      "echo 'window.vegaEmbed=1; a=\"</script>\"; b=/</g' > $6",
      folder);
  CHECK(report.messages.empty());
  const std::string page = test::read_file(report.page);
  for (const char* part :
       {"window.vegaEmbed=1", "\\u003c/script>\"", "b=/</g", "default-src 'none'",
        "><svg>drawn</svg>", "<noscript><div class=\"still\" role=\"img\" aria-label=\""}) {
    CHECK_THAT(page, Contains(part));
  }
  for (const char* word : {"src=\"http", "href=\"http", "src=\"//", "@import", "url(http"}) {
    CHECK_THAT(page, !Contains(word));
  }
  CHECK_FALSE(fs::exists(folder / "out/figures/.bundle.js"));
  CHECK_FALSE(fs::exists(folder / "out/figures/.render.log"));
}

TEST_CASE("without vl-convert, and without an interpreter, the message says how to get it",
          "[reports]") {
  for (const char* body : {"exit 3", ""}) {
    const test::TemporaryFolder folder;
    const auto report = rendered_by(body, folder);
    REQUIRE(report.messages.size() == 1);
    CHECK_THAT(report.messages[0],
               Contains("./attnbench --yes report") && Contains("pip install vl-convert-python"));
    CHECK_THAT(test::read_file(report.page), Contains("pip install vl-convert-python"));
  }
  const test::TemporaryFolder folder;
  const auto report = rendered_by("echo first >&2; echo 'kernel.vl.json: bad' >&2; exit 1", folder);
  CHECK(report.messages ==
        std::vector<std::string>{"not all pictures were made: kernel.vl.json: bad"});
}

TEST_CASE("several results are sections of one page; a second report replaces its files alone",
          "[reports]") {
  const test::TemporaryFolder folder;
  const fs::path out = folder / "out";
  const fs::path file = test::fixture_file();
  fs::create_directories(out / "figures");
  test::write_file(out / "figures/mine.svg", "mine");
  const auto first = report_of({file, file}, out);
  CHECK(first.figures.size() > 24);
  CHECK_THAT(test::read_file(first.page), Contains("id=\"result-0\"") &&
                                              Contains("id=\"result-1\"") &&
                                              Contains("href=\"#result-1\""));
  CHECK(fs::exists(out / "tables/fixture_2.csv"));
  test::write_file(first.figures.back(), "{\"edited\": 1}");
  CHECK(report_of({file}, out).figures.size() < first.figures.size());
  CHECK_FALSE(fs::exists(first.figures.front()));
  CHECK(test::read_file(first.figures.back()) == "{\"edited\": 1}");
  CHECK(test::read_file(out / "figures/mine.svg") == "mine");
}

TEST_CASE("a report refuses to replace what it did not write", "[reports]") {
  const test::TemporaryFolder folder;
  const fs::path out = folder / "out";
  const fs::path file = test::fixture_file();
  test::write_file(out / "index.html", "mine");
  test::write_file(out / "tables/result.csv", "mine");
  CHECK_THROWS_WITH(report_of({file}, out),
                    Contains("index.html, tables/result.csv") && Contains("--force"));
  CHECK(test::read_file(out / "index.html") == "mine");
  CHECK_FALSE(fs::exists(out / "tables/result.md"));
  const auto report = report_of({file}, out, false, true);
  CHECK(test::read_file(report.page) != "mine");
  // Ours by now; but not once somebody worked on it.
  report_of({file}, out);
  test::write_file(out / "index.html", test::read_file(report.page) + "<!-- my notes -->");
  CHECK_THROWS_AS(report_of({file}, out), UsageFailure);
}

TEST_CASE("a result's own folder is the default", "[reports]") {
  const test::TemporaryFolder folder;
  fs::copy_file(test::fixture_file(), folder / "result.json");
  const auto report = report_of({folder.path()}, {});
  CHECK(report.page == folder / "index.html");
  REQUIRE(report.messages.size() == 1);
  CHECK_THAT(report.messages[0], Contains("there is no fixture_published.csv"));
  CHECK_THROWS_AS(report_of({folder.path()}, folder / "result.json/out"), EnvironmentFailure);
}
