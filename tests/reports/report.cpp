#include "reports/report.hpp"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/result/document.hpp"
#include "harness/compare/compare.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
namespace fs = std::filesystem;

namespace {

const std::string fixture_file = test::source_folder() + "/tests/reports/fixture.json";

/// An interpreter that does what the test says in shell; $2 is the folder of figures, $6 the
/// bundle.
class Interpreter {
 public:
  Interpreter(const test::TemporaryFolder& folder, const std::string& body) {
    const fs::path file = folder / "python";
    test::write_file(file, "#!/bin/sh\n" + body + "\n");
    fs::permissions(file, fs::perms::owner_all);
    setenv("ATTNBENCH_PYTHON", file.c_str(), 1);
  }
  ~Interpreter() { unsetenv("ATTNBENCH_PYTHON"); }
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;
};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

reports::ReportOptions options_of(const fs::path& out, bool render) {
  reports::ReportOptions options;
  options.out = out;
  options.render = render;
  return options;
}

}  // namespace

TEST_CASE("results that were written earlier draw, read and compare as they are", "[reports]") {
  // As commit f85f8ff wrote them, samples cut to four a round.
  for (const char* name : {"quickstart", "decode", "mqar_smoke"}) {
    INFO(name);
    const fs::path file =
        fs::path(test::source_folder()) / "tests/reports/fixtures" / (std::string(name) + ".json");
    const test::TemporaryFolder folder;
    const auto report = reports::write_report({file}, options_of(folder / "out", false));
    CHECK(report.messages.empty());
    CHECK(report.figures.size() >= 2);
    const nlohmann::json result = result::read_result(file);
    const std::string title = result["attnbench"]["suite"]["title"];
    CHECK(holds(test::read_file(report.page), title.substr(0, title.find_first_of("<&>\"'"))));
    const auto compared = compare::compare(result, result, 0.03);
    CHECK_FALSE(holds(compare::to_text(compared, 100, true), "SLOW"));
  }
}

TEST_CASE("a report without pictures has specifications, tables and a page", "[reports]") {
  const test::TemporaryFolder folder;
  const auto report = reports::write_report({fixture_file}, options_of(folder / "out", false));
  CHECK(report.messages.empty());
  CHECK(report.page == folder / "out/index.html");
  CHECK(report.figures.size() == 12);
  for (const auto& figure : report.figures) {
    CHECK(nlohmann::json::parse(test::read_file(figure)).contains("$schema"));
  }
  for (const char* name : {"result.md", "result.tex", "result.csv"}) {
    CHECK(fs::file_size(folder / "out/tables" / name) > 1000);
  }
  const std::string page = test::read_file(report.page);
  CHECK(holds(page, "Four mechanisms &lt;side by side&gt; &amp; a wrong one"));
  CHECK(holds(page, "out_of_memory"));
  CHECK(holds(page, "still scanning &lt;token 7123&gt; &amp; counting"));
  CHECK(holds(page, "attnbench run suites/fixture.json --profile quick --threads 2"));
  CHECK(holds(page, "130 GFLOP/s"));
  CHECK(holds(page, "the load of the machine was 1.4"));
  CHECK_FALSE(holds(page, "vegaEmbed"));
}

TEST_CASE("the page says which device a word stands for", "[reports]") {
  const test::TemporaryFolder folder;
  auto result = nlohmann::json::parse(test::read_file(fixture_file));
  result["attnbench"]["machine"]["devices"]["cuda"] = {
      {"name", "Example GPU"}, {"memory_bytes", 85899345920}, {"driver", "NVIDIA 1.2"}};
  test::write_file(folder / "result.json", result.dump());
  const auto report =
      reports::write_report({folder / "result.json"}, options_of(folder / "out", false));
  const std::string page = test::read_file(report.page);
  CHECK(holds(page, "Example GPU (cuda), Example CPU 3.0 GHz"));
  CHECK(holds(page, "Device: cuda"));
  CHECK(holds(page, "80.0 GiB"));
}

TEST_CASE("the page asks nothing of the network", "[reports]") {
  const test::TemporaryFolder folder;
  const Interpreter interpreter(folder, "echo 'window.vegaEmbed=1; a=\"</script>\"; b=/</g' > $6");
  const auto report = reports::write_report({fixture_file}, options_of(folder / "out", true));
  const std::string page = test::read_file(report.page);
  CHECK(holds(page, "window.vegaEmbed=1"));
  CHECK(holds(page, "\\u003c/script>\""));
  CHECK(holds(page, "b=/</g"));
  CHECK(holds(page, "default-src 'none'"));
  for (const char* word : {"src=\"http", "href=\"http", "src=\"//", "@import", "url(http"}) {
    CHECK_FALSE(holds(page, word));
  }
}

TEST_CASE("the pictures that were made are on the page", "[reports]") {
  const test::TemporaryFolder folder;
  const Interpreter interpreter(
      folder,
      "for f in $2/*.vl.json; do echo '<?xml?><svg>drawn</svg>' > ${f%.vl.json}.svg; done\n"
      "echo bundle > $6");
  const auto report = reports::write_report({fixture_file}, options_of(folder / "out", true));
  CHECK(report.messages.empty());
  CHECK_THAT(test::read_file(report.page),
             Catch::Contains("<noscript><div class=\"still\" role=\"img\" aria-label=\"") &&
                 Catch::Contains("><svg>drawn</svg>"));
  CHECK_FALSE(fs::exists(folder / "out/figures/.bundle.js"));
  CHECK_FALSE(fs::exists(folder / "out/figures/.render.log"));
}

TEST_CASE("without vl-convert the message says how to get it", "[reports]") {
  const test::TemporaryFolder folder;
  const Interpreter interpreter(folder, "exit 3");
  const auto report = reports::write_report({fixture_file}, options_of(folder / "out", true));
  REQUIRE(report.messages.size() == 1);
  CHECK_THAT(report.messages[0], Catch::Contains("./attnbench --yes report") &&
                                     Catch::Contains("pip install vl-convert-python"));
  CHECK(holds(test::read_file(report.page), "pip install vl-convert-python"));
}

TEST_CASE("a missing interpreter is the same finding", "[reports]") {
  const test::TemporaryFolder folder;
  setenv("ATTNBENCH_PYTHON", (folder / "nowhere").c_str(), 1);
  const auto report = reports::write_report({fixture_file}, options_of(folder / "out", true));
  unsetenv("ATTNBENCH_PYTHON");
  REQUIRE(report.messages.size() == 1);
  CHECK_THAT(report.messages[0], Catch::Contains("pip install vl-convert-python"));
}

TEST_CASE("the renderer's complaints are passed on", "[reports]") {
  const test::TemporaryFolder folder;
  const Interpreter interpreter(folder, "echo first >&2; echo 'kernel.vl.json: bad' >&2; exit 1");
  const auto report = reports::write_report({fixture_file}, options_of(folder / "out", true));
  REQUIRE(report.messages.size() == 1);
  CHECK(report.messages[0] == "not all pictures were made: kernel.vl.json: bad");
}

TEST_CASE("a second report replaces the files of the first, and nobody else's", "[reports]") {
  const test::TemporaryFolder folder;
  const fs::path out = folder / "out";
  fs::create_directories(out / "figures");
  test::write_file(out / "figures/mine.svg", "mine");
  test::write_file(out / "figures/mine.txt", "mine");
  // An earlier report had more figures.
  const auto first = reports::write_report({fixture_file, fixture_file}, options_of(out, false));
  test::write_file(first.figures.back(), "{\"edited\": 1}");
  const std::size_t before = first.figures.size();
  const auto second = reports::write_report({fixture_file}, options_of(out, false));
  CHECK(second.figures.size() < before);
  CHECK_FALSE(fs::exists(first.figures.front()));
  CHECK(test::read_file(first.figures.back()) == "{\"edited\": 1}");
  CHECK(test::read_file(out / "figures/mine.svg") == "mine");
  CHECK(test::read_file(out / "figures/mine.txt") == "mine");
}

TEST_CASE("a report refuses to replace what it did not write", "[reports]") {
  const test::TemporaryFolder folder;
  const fs::path out = folder / "out";
  fs::create_directories(out / "tables");
  test::write_file(out / "index.html", "mine");
  test::write_file(out / "tables/result.csv", "mine");
  CHECK_THROWS_WITH(reports::write_report({fixture_file}, options_of(out, false)),
                    Catch::Contains("index.html, tables/result.csv") && Catch::Contains("--force"));
  CHECK(test::read_file(out / "index.html") == "mine");
  CHECK(test::read_file(out / "tables/result.csv") == "mine");
  CHECK_FALSE(fs::exists(out / "tables/result.md"));
  reports::ReportOptions forced = options_of(out, false);
  forced.force = true;
  const auto report = reports::write_report({fixture_file}, forced);
  CHECK(test::read_file(report.page) != "mine");
  // Ours by now; but not once somebody worked on it.
  reports::write_report({fixture_file}, options_of(out, false));
  test::write_file(out / "index.html", test::read_file(report.page) + "<!-- my notes -->");
  CHECK_THROWS_AS(reports::write_report({fixture_file}, options_of(out, false)), UsageFailure);
}

TEST_CASE("several results are sections of one page, none overwriting another", "[reports]") {
  const test::TemporaryFolder folder;
  const auto report =
      reports::write_report({fixture_file, fixture_file}, options_of(folder / "out", false));
  CHECK(report.figures.size() == 24);
  const std::string page = test::read_file(report.page);
  CHECK(holds(page, "id=\"result-0\""));
  CHECK(holds(page, "id=\"result-1\""));
  CHECK(holds(page, "href=\"#result-1\""));
  CHECK(fs::exists(folder / "out/tables/fixture_2.csv"));
}

TEST_CASE("a result's own folder is the default", "[reports]") {
  const test::TemporaryFolder folder;
  fs::copy_file(fixture_file, folder / "result.json");
  reports::ReportOptions options;
  options.render = false;
  const auto report = reports::write_report({folder.path()}, options);
  CHECK(report.page == folder / "index.html");
  REQUIRE(report.messages.size() == 1);
  CHECK_THAT(report.messages[0], Catch::Contains("there is no fixture_published.csv"));
}

TEST_CASE("a folder that cannot be made is the environment's fault", "[reports]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "file", "");
  CHECK_THROWS_AS(reports::write_report({fixture_file}, options_of(folder / "file/out", false)),
                  EnvironmentFailure);
}
