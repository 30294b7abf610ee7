#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench;

namespace {

const std::string fixture = std::string(ATTNBENCH_SOURCE_DIR) + "/tests/reports/fixture.json";

}  // namespace

TEST_CASE("report prints the page's path", "[program]") {
  const test::TemporaryFolder folder;
  const auto done = test::run(
      {test::program(), "report", fixture, "--no-render", "--out", (folder / "out").string()});
  CHECK(done.exit_code == 0);
  CHECK(done.out == (folder / "out/index.html").string() + "\n");
  CHECK(std::filesystem::exists(folder / "out/index.html"));
}

TEST_CASE("report refuses what is no result", "[program]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "result.json", "{\"context\": {}}");
  const auto malformed = test::run({test::program(), "report", folder.path().string()});
  CHECK(malformed.exit_code == 2);
  CHECK_THAT(malformed.err, Catch::Contains("result.json: /benchmarks: expected an array"));
  CHECK(test::run({test::program(), "report", "no/such/run"}).exit_code == 2);
  CHECK(test::run({test::program(), "report"}).exit_code == 2);
  CHECK(test::run({test::program(), "report", fixture, "--format", "gif"}).exit_code == 2);
}

TEST_CASE("compare describes and exits with 0", "[program]") {
  const auto text = test::run({test::program(), "compare", fixture, fixture});
  CHECK(text.exit_code == 0);
  CHECK_THAT(text.out, Catch::Contains("disjoint in 0 of 111 timings"));
  const auto json = test::run({test::program(), "compare", fixture, fixture, "--json"});
  CHECK(json.exit_code == 0);
  CHECK(nlohmann::json::parse(json.out)["timed"] == 111);
  CHECK(test::run({test::program(), "compare", fixture, "nowhere"}).exit_code == 2);
}
