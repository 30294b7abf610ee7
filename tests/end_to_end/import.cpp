#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

const std::string import_fixture = test::source_folder() + "/tests/reports/fixture.json";

/// One record of another program beside a cell of the fixture that has a forward time.
Json foreign() {
  const Json result = Json::parse(test::read_file(import_fixture));
  std::string id;
  for (const Json& cell : result.at("attnbench").at("cells")) {
    if (cell.value("timing", Json::object()).contains("forward")) id = cell.at("id");
  }
  return {{"schema", 1},
          {"program", {{"name", "Other"}, {"version", "2.0"}}},
          {"threads", 99},
          {"command", "other.py"},
          {"records", {{{"beside", id}, {"label", "flash"}, {"seconds", {{"forward", {{0.5}}}}}}}}};
}

}  // namespace

TEST_CASE("import sets a foreign file beside a run, and report draws it", "[program]") {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "peers.json").string();
  const std::string out = (folder / "joined").string();
  const std::string line = "import " + file + " --beside " + import_fixture + " --out " + out;
  test::write_file(file, foreign().dump());
  const auto done = test::call(line);
  CHECK(done.exit_code == 0);
  CHECK(done.out == out + "/result.json\n");
  CHECK_THAT(done.err, Catch::Contains("peers.json: measured with 99 threads"));
  CHECK(test::call("report --no-render " + out).exit_code == 0);
  CHECK_THAT(test::read_file(out + "/index.html"), Catch::Contains("flash (Other 2.0)"));
  const auto again = test::call(line);
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, Catch::Contains("is there already"));
}

TEST_CASE("import refuses what is no file of foreign records", "[program]") {
  const test::TemporaryFolder folder;
  const std::string file = (folder / "peers.json").string();
  const auto refused = [&](const std::string& beside) {
    const auto done = test::call("import " + file + " --beside " + beside + " --out " +
                                 (folder / "joined").string());
    CHECK(done.exit_code == 2);
    CHECK_FALSE(std::filesystem::exists(folder / "joined/result.json"));
    return done.err;
  };
  CHECK_THAT(refused(import_fixture),
             Catch::Contains("peers.json: there is no such file; expected a file of foreign"));
  test::write_file(file, "{");
  CHECK_THAT(refused(import_fixture),
             Catch::Contains("peers.json:1:2: the text ends in the middle of a value"));
  test::write_file(file, "{}");
  CHECK_THAT(refused(import_fixture), Catch::Contains("peers.json: /schema: expected"));
  test::write_file(file, foreign().dump());
  CHECK_THAT(refused((folder / "none").string()), Catch::Contains("none: there is no such file"));
}
