#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/end_to_end/installed.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench;

namespace {

const std::string fixture = test::source_folder() + "/tests/reports/fixture.json";

}  // namespace

TEST_CASE("report prints the page's path, then the verdict", "[program]") {
  const test::TemporaryFolder folder;
  const auto done =
      test::call("report " + fixture + " --no-render --out " + (folder / "out").string());
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.out, Catch::StartsWith((folder / "out/index.html").string() + "\n\nVerdict\n"));
  CHECK(done.out.find('\x1b') == std::string::npos);  // no terminal, no colour
  CHECK(std::filesystem::exists(folder / "out/index.html"));
}

TEST_CASE("report of two results says how many pairs are faster, and begins with both",
          "[program]") {
  const test::TemporaryFolder folder;
  const std::string out = (folder / "out").string();
  // Times four times as short, of a later day; trainings are no pair of times.
  nlohmann::json later = nlohmann::json::parse(test::read_file(fixture));
  later["attnbench"]["run"]["finished_at"] = "2026-02-03T03:05:35+00:00";
  for (nlohmann::json& cell : later["attnbench"]["cells"]) {
    if (!cell.contains("timing")) continue;
    for (nlohmann::json& timing : cell["timing"]) {
      for (const char* key : {"median_seconds", "low_seconds", "high_seconds"}) {
        if (timing.contains(key)) timing[key] = timing[key].get<double>() / 4;
      }
      for (nlohmann::json& round : timing["rounds"]) {
        round["median_seconds"] = round["median_seconds"].get<double>() / 4;
      }
    }
  }
  test::write_file(folder / "later/result.json", later.dump());
  const auto done = test::call("report " + fixture + " " + (folder / "later").string() +
                               " --no-render --no-plot --out " + out);
  INFO(done.out << done.err);
  REQUIRE(done.exit_code == 0);
  CHECK_THAT(done.out, Catch::Contains("\n2026-02-03 0123abc beside 2026-01-02 0123abc: ") &&
                           Catch::Contains("(attnbench compare " + fixture + " "));
  const auto compared = test::call("compare --json " + fixture + " " + (folder / "later").string());
  REQUIRE(compared.exit_code == 0);
  std::map<std::string, int> counts;
  for (const auto& pair : nlohmann::json::parse(compared.out)["pairs"]) {
    if (!pair.value("timing", "").empty()) ++counts[pair["verdict"]];
  }
  for (const auto& [verdict, count] : counts) {
    CHECK_THAT(done.out, Catch::Contains(std::to_string(count) + " " + verdict));
  }
  const std::string page = test::read_file(out + "/index.html");
  CHECK(page.find("2026-01-02 0123abc beside 2026-02-03 0123abc</h1>") <
        page.find("id=\"result-1\""));
  CHECK(std::filesystem::exists(out + "/figures/side_by_side_ratios.vl.json"));
  CHECK(std::filesystem::exists(out + "/figures/side_by_side_kernel_time_forward.vl.json"));
}

TEST_CASE("report removes the worker that a killed run left", "[program]") {
  const test::TemporaryFolder folder;
  std::filesystem::copy_file(fixture, folder / "result.json");
  test::write_file(folder / "journal.jsonl", "");
  test::write_file(folder / ".attnbench-worker-0/bin/attnbench-worker", "left");
  const auto done = test::call("report " + folder.path().string() + " --no-render");
  INFO(done.err);
  CHECK(done.exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(folder / ".attnbench-worker-0"));
}

TEST_CASE("report prints the verdict as JSON and writes nothing", "[program]") {
  const test::TemporaryFolder folder;
  std::filesystem::copy_file(fixture, folder / "result.json");
  const auto done = test::call("report " + folder.path().string() + " --json");
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  const nlohmann::json json = nlohmann::json::parse(done.out);
  REQUIRE(json["verdicts"].size() == 1);
  const auto printed =
      test::call("report " + fixture + " --no-render --out " + (folder / "out").string());
  CHECK_THAT(printed.out, Catch::EndsWith("\n" + json["verdicts"][0]["text"].get<std::string>()));
  std::filesystem::remove_all(folder / "out");
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()),
                      std::filesystem::directory_iterator()) == 1);
  CHECK(test::call("report " + fixture + " --json --csv -").exit_code == 2);
}

TEST_CASE("an installed program says what is missing there for pictures", "[program]") {
  const test::TemporaryFolder folder;
  auto environment = test::installed_elsewhere().environment();
  environment["ATTNBENCH_PYTHON"] = folder / "nowhere";
  const auto done =
      test::run({test::installed_elsewhere().program(), "report", fixture, "--out", folder / "out"},
                580, environment);
  CHECK(done.exit_code == 0);
  CHECK_THAT(done.err, Catch::Contains("nowhere has no module vl_convert") &&
                           Catch::Contains("share/attnbench/venv") &&
                           !Catch::Contains("./attnbench"));
  environment["ATTNBENCH_HOST_PYTHON"] = folder / "nowhere";  // as a wheel's command sets it
  const auto wheel =
      test::run({test::installed_elsewhere().program(), "report", fixture, "--out", folder / "out"},
                580, environment);
  CHECK_THAT(wheel.err, Catch::Contains("nowhere -m pip install vl-convert-python") &&
                            !Catch::Contains("share/attnbench/venv"));
  environment.erase("ATTNBENCH_HOST_PYTHON");
  // The suites are installed, too, and found by name.
  const auto planned =
      test::run({test::installed_elsewhere().program(), "plan", "quickstart", "--profile", "quick"},
                580, environment, folder.path());
  INFO(planned.err);
  CHECK(planned.exit_code == 0);
  CHECK_THAT(planned.out, Catch::Contains("softmax, naive"));
}

TEST_CASE("an installed program draws by its own script", "[program]") {
  const test::TemporaryFolder folder;
  const std::string python = folder / "python";
  test::write_file(
      python, "#!/bin/sh\nprintf '%s\\n' \"$1\" > '" + (folder / "said").string() + "'\nexit 0\n");
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  auto environment = test::installed_elsewhere().environment();
  environment["ATTNBENCH_PYTHON"] = python;
  const auto done =
      test::run({test::installed_elsewhere().program(), "report", fixture, "--out", folder / "out"},
                580, environment);
  INFO(done.err);
  CHECK(done.exit_code == 0);
  std::string script = test::read_file(folder / "said");
  while (!script.empty() && script.back() == '\n') script.pop_back();
  CHECK(std::filesystem::equivalent(
      script, test::installed_elsewhere().prefix / "share/attnbench/render.py"));
}

TEST_CASE("an installed program has figures and a page that draws them", "[program][night]") {
  // What the launcher prepares; elsewhere the tests before hold what is said without it.
  const std::filesystem::path launchers = test::source_folder() + "/build/venv";
  if (!std::filesystem::exists(launchers / ".ready")) return;
  const test::TemporaryFolder folder;
  auto environment = test::installed_elsewhere().environment();
  environment["ATTNBENCH_PYTHON"] = launchers / "bin/python";
  environment["XDG_CACHE_HOME"] = folder / "cache";
  const std::vector<std::string> report = {test::installed_elsewhere().program(), "report", fixture,
                                           "--out", folder / "out"};
  const auto done = test::run(report, 580, environment);
  INFO(done.err);
  CHECK(done.exit_code == 0);
  CHECK(done.err.find("no pictures") == std::string::npos);
  CHECK_THAT(test::read_file(folder / "out/figures/kernel_time_forward.svg"),
             Catch::StartsWith("<svg"));
  CHECK_THAT(test::read_file(folder / "out/index.html"), Catch::Contains("vegaEmbed"));
  // The page's JavaScript is kept for the next one.
  std::size_t kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache/attnbench")) {
    if (entry.path().extension() != ".js") continue;
    ++kept;
    test::write_file(entry.path(), test::read_file(entry.path()) + "/* the kept one */");
  }
  CHECK(kept == 1);
  CHECK(test::run(report, 580, environment).exit_code == 0);
  CHECK_THAT(test::read_file(folder / "out/index.html"), Catch::Contains("the kept one"));
  // One that is no text is made anew.
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cache/attnbench")) {
    if (entry.path().extension() == ".js") test::write_file(entry.path(), "\xff\xfe");
  }
  CHECK(test::run(report, 580, environment).exit_code == 0);
  CHECK_THAT(test::read_file(folder / "out/index.html"), Catch::Contains("vegaEmbed"));
}

TEST_CASE("report --csv prints the tidy table and nothing else", "[program]") {
  const test::TemporaryFolder folder;
  const std::string report = "report " + fixture + " --csv ", file = folder / "table.csv";
  const auto printed = test::call(report + "-");
  CHECK(printed.exit_code == 0);
  CHECK(printed.err.empty());
  CHECK_THAT(printed.out, Catch::StartsWith("id,label,task,mechanism,implementation,device,"));
  const auto written = test::call(report + file);
  CHECK(written.exit_code == 0);
  CHECK(written.out.empty());
  CHECK(test::read_file(file) == printed.out);
  CHECK(test::call(report + file).exit_code == 0);
  test::write_file(file, "edited");
  const auto again = test::call(report + file);
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, Catch::Contains("is there already") && Catch::Contains("--force"));
  CHECK(test::call(report + "- " + fixture).exit_code == 0);
}

TEST_CASE("report refuses what is no result", "[program]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "result.json", "{\"context\": {}}");
  const auto malformed = test::call("report " + folder.path().string());
  CHECK(malformed.exit_code == 2);
  CHECK_THAT(malformed.err, Catch::Contains("result.json: /benchmarks: expected an array"));
  for (const std::string& line :
       {std::string("report no/such/run"), std::string("report"),
        "report " + fixture + " --format gif", "compare " + fixture + " nowhere"}) {
    INFO(line);
    CHECK(test::call(line).exit_code == 2);
  }
}

TEST_CASE("compare describes and exits with 0", "[program]") {
  const test::TemporaryFolder files;
  const std::string compare = "compare " + fixture + " " + fixture;
  const std::string markdown = files / "compare.md", junit = files / "compare.xml";
  const auto text = test::call(compare + " --markdown " + markdown + " --junit " + junit);
  INFO(text.err);
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.out, Catch::Contains("disjoint in 0 of 111 timings"));
  CHECK_THAT(test::read_file(markdown), Catch::StartsWith("<!-- attnbench compare -->\n"));
  CHECK_THAT(test::read_file(junit), Catch::Contains("<testsuite name=\"attnbench compare\"") &&
                                         Catch::Contains("<testcase "));
  const auto json = test::call(compare + " --json");
  CHECK(json.exit_code == 0);
  CHECK(nlohmann::json::parse(json.out)["timed"] == 111);
}
