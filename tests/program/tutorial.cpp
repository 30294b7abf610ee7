// attention/README.md, followed to the letter in an empty folder with attnbench installed.
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "tests/program/installed.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

/// The page's blocks as one script: `sh` is run, `cpp` is written to the file named in front of it.
std::string script_of(const std::string& page) {
  std::istringstream lines(page);
  std::ostringstream script;
  script << "set -eu\n";
  std::string file;
  std::string kind;  // of the block that we are in; empty = none
  for (std::string line; std::getline(lines, line);) {
    std::smatch part;
    if (kind.empty()) {
      if (std::regex_match(line, part, std::regex("`([^`]+)`:"))) file = part[1];
      if (!std::regex_match(line, part, std::regex("```([a-z]+)"))) continue;
      kind = part[1];
      if (kind == "cpp") script << "cat > '" << file << "' <<'END_OF_FILE'\n";
    } else if (line == "```") {
      if (kind == "cpp") script << "END_OF_FILE\n";
      kind.clear();
    } else {
      script << line << "\n";
    }
  }
  return script.str();
}

Json cells_of(const std::filesystem::path& run_folder) {
  return Json::parse(read_file(run_folder / "result.json"))["attnbench"]["cells"];
}

}  // namespace

TEST_CASE("the page on a mechanism of one's own works as it is written", "[program][tutorial]") {
  const TemporaryFolder folder;
  const std::string page = read_file(std::string(ATTNBENCH_SOURCE_DIR) + "/attention/README.md");
  write_file(folder / "script", script_of(page));
  const Finished finished =
      run({"bash", folder / "script"}, 590, installed_environment(), folder.path());
  INFO(finished.out << finished.err);
  REQUIRE(finished.exit_code == 0);
  CHECK_THAT(finished.out, Contains("retention recurrent") && Contains("all properties hold") &&
                               Contains("(from retention/build/libretention.so)"));
  CHECK_THAT(read_file(folder / "check.md"), Contains("# attnbench check: all properties hold"));
  int own = 0;
  for (const Json& cell : cells_of(folder / "run")) {
    INFO(cell.dump(1));
    CHECK(cell["status"] == "ok");
    own += cell["label"] == "retention" ? 1 : 0;
  }
  CHECK(own >= 2);
  CHECK_THAT(read_file(folder / "run/index.html"), Contains("retention"));
  CHECK(cells_of(folder / "forms").size() == 6);
}
