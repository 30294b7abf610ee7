// attnbench validate, and what run and plan share with it on the command line.
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

namespace {

using namespace attnbench::test;

const std::string suites = test::source_folder() + "/suites/";

}  // namespace

TEST_CASE("validate: the suites that come with the program hold against the real catalogue",
          "[program]") {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(suites)) {
    if (entry.path().extension() != ".json" || entry.path().stem() == "shapes") continue;
    ++count;
    const Finished finished = call("validate " + entry.path().string());
    INFO(entry.path() << ": " << finished.err);
    CHECK(finished.exit_code == 0);
    CHECK_THAT(finished.out, Catch::Contains(": ok, ") && Catch::Contains("in full") &&
                                 Catch::Contains("in profile quick"));
  }
  CHECK(count >= 10);
}

TEST_CASE("validate: a malformed suite ends with 2, its place, and nothing written", "[program]") {
  const TemporaryFolder folder;
  write_file(folder / "bad.json",
             "{\"name\": \"s\", \"task\": \"kernel\",\n\"set\": {\"lenght\": 3},\n"
             "\"mechanisms\": [\"latte\"]}");
  write_file(folder / "cut.json", "{\"name\": ");
  for (const char* command : {"validate", "plan", "run"}) {
    const Finished finished = call(command + std::string(" bad.json"), {}, folder.path());
    INFO(command);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Catch::Contains("bad.json:2: /set/lenght: ") &&
                                 Catch::Contains("did you mean \"length\"?"));
    CHECK(finished.out.empty());
  }
  const Finished both = call("validate cut.json bad.json", {}, folder.path());
  CHECK_THAT(both.err, Catch::Contains("cut.json:1: ") && Catch::Contains("bad.json:2: "));
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    files += entry.exists() ? 1 : 0;
  }
  CHECK(files == 2);
}

TEST_CASE("validate: bad command lines end with 2 and say what was meant", "[program]") {
  const std::string quickstart = "validate " + suites + "quickstart.json";
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"validate", "expected a suite file"},
      {"validate " + suites + "quickstat.json", "quickstart.json"},
      {quickstart + " --profile quik", "mean \"quick\""},
      {quickstart + " --porfile quick", "mean \"--profile\""},
      {quickstart + " --set lenght=3", "mean \"length\""},
      {quickstart + " --only nothing_at_all", "leave nothing"},
      {quickstart + " --skip [", "not a regular expression"},
      {"validate " + suites + "mqar_smoke.json --set autocast=half", "off, bfloat16"},
      {"plan", "nothing to do"},
      {"plan length=3", "as in `attnbench plan latte length=3`"},
      {"plan latt=3", "no mechanism, option or suite is called \"latt\" (NAME=VALUE"},
      {"plan latt=3", "as after --set); did you mean \"latte\"?"},
      {"plan quickstat=3", "mean \"quickstart\""},
      {"plan --lenght 3", "mean \"length\""},
      {"plan zzzzzz=3", "as after --set); there are: "},
      {"plan lattte", "mean \"latte\""},
      {"plan latte --lenght 3", "mean \"length\""},
      {"plan latte --length 8..4", "not a range"},
      {"plan latte -x", "no flag -x"},
      {"plan latte --device gpu", "no device \"gpu\""}};
  for (const auto& [line, complaint] : wrong) {
    const Finished finished = call(line);
    INFO(line << " said: " << finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Catch::Contains(complaint));
  }
}
