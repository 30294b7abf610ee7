#include <filesystem>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench;

TEST_CASE("trend adds a result once, draws it and never gates", "[trend]") {
  const std::string fixture = test::source_folder() + "/tests/reports/fixture.json";
  const test::TemporaryFolder folder;
  const std::string history = folder / "history.jsonl";
  const auto trend = [&](const std::string& more) {
    return test::call("trend --history " + history + " " + more);
  };
  CHECK(trend("").exit_code == 2);  // there is none yet
  const auto first = trend(fixture + " --no-render --out " + (folder / "out").string());
  INFO(first.err);
  CHECK(first.exit_code == 0);
  CHECK_THAT(first.out, Catch::Contains("added   ") && Catch::Contains("No level changed"));
  CHECK(std::filesystem::exists(folder / "out/changes.md"));
  const std::string before = test::read_file(history);
  const auto again = trend(fixture);
  CHECK(again.exit_code == 2);
  CHECK_THAT(again.err, Catch::Contains("has it already"));
  CHECK(test::read_file(history) == before);
  test::write_file(history, before + "rubbish\n");
  const auto rubbish = trend("");
  CHECK(rubbish.exit_code == 0);
  CHECK_THAT(rubbish.err, Catch::Contains("left out: ") && Catch::Contains("history.jsonl:"));
  std::string many;
  for (int i = 0; i < 30; ++i) many += before;
  test::write_file(history, many);
  const auto bounded = trend("");
  CHECK_THAT(bounded.err, Catch::Contains(" more lines\n"));
  CHECK(bounded.err.size() < 5000);
  test::write_file(history, "rubbish\n");
  CHECK(trend("").exit_code == 2);
  CHECK(trend(folder / "nowhere").exit_code == 2);
}
