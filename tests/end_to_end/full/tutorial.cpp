// attention/README.md, followed to the letter in an empty folder with attnbench installed.
#include <filesystem>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

#include "tests/end_to_end/installed.hpp"
#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/stored_result.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

/// The page's blocks as one script: `sh` is run, what has a language else is written to the file
/// named in front of it, and what has none is there to be read.
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
      if (!std::regex_match(line, part, std::regex("```(.*)"))) continue;
      kind = part[1].length() > 0 ? part[1].str() : "text";
      if (kind != "sh" && kind != "text") script << "cat > '" << file << "' <<'END_OF_FILE'\n";
    } else if (line == "```") {
      if (kind != "sh" && kind != "text") script << "END_OF_FILE\n";
      kind.clear();
    } else if (kind != "text") {
      script << line << "\n";
    }
  }
  return script.str();
}

Json all_cells_of(const std::filesystem::path& run_folder) {
  return attnbench::test::stored_result(run_folder / "result.json")["attnbench"]["cells"];
}

}  // namespace

TEST_CASE("the page on a mechanism of one's own works as it is written, from nothing",
          "[program][tutorial]") {
  const TemporaryFolder folder;
  const auto environment = installed_elsewhere().environment();
  const std::string page = read_file(source_folder() + "/attention/README.md");
  write_file(folder / "script", script_of(page));
  const Finished finished = run({"bash", folder / "script"}, 590, environment, folder.path());
  INFO(finished.out << finished.err);
  REQUIRE(finished.exit_code == 0);
  CHECK_THAT(finished.out, Contains("fading recurrent") && Contains("all properties hold") &&
                               Contains("(from fading/build/libfading.so)") &&
                               Contains("in strips of the memory"));
  CHECK_THAT(read_file(folder / "check.md"), Contains("# attnbench check: all properties hold"));
  int own = 0;
  for (const Json& cell : all_cells_of(folder / "run")) {
    INFO(cell.dump(1));
    CHECK(was_measured(cell));
    own += cell["label"] == "fading" ? 1 : 0;
  }
  CHECK(own >= 2);
  CHECK_THAT(read_file(folder / "run/index.html"), Contains("fading"));
  CHECK(all_cells_of(folder / "forms").size() == 8);

  // The kernel: the same properties, and a verdict that is one, whichever it is.
  const std::string fused = read_file(folder / "fused.md");
  for (const char* dtype : {"float64", "float32"}) {
    CHECK_THAT(fused, Contains(std::string("| fading | fused | causal | ") + dtype + " | ok |"));
  }
  const Json pair = Json::parse(read_file(folder / "gain/ab.json"))["pairs"].at(0);
  // Beside other tests rounds may be disturbed, which count for nothing.
  if (pair.contains("ratio")) CHECK(pair["ratio"].get<double>() > 0);
  CHECK(pair["new"].value("rounds", 0) <= 6);
  for (const Json& cell : all_cells_of(folder / "forms")) CHECK(was_measured(cell));
  // What a suite takes where no implementation is named.
  for (const Json& cell : all_cells_of(folder / "run")) {
    if (cell["label"] == "fading") CHECK(cell["chosen"]["implementation"] == "fused");
  }
  std::set<std::string> learned;
  for (const Json& cell : all_cells_of(folder / "recall")) {
    INFO(cell.dump(1));
    CHECK(was_measured(cell));
    CHECK(cell["training"]["steps"] == 8);
    learned.insert(cell["label"]);
  }
  CHECK(learned == std::set<std::string>{"fading", "softmax"});
  CHECK_THAT(read_file(folder / "recall/index.html"), Contains("fading"));

  // The CUDA kernel is in the plugin where there is a compiler for it, and needs a device to run.
  const bool compiled =
      std::filesystem::exists(folder / "fading/build/CMakeFiles/fading.dir/kernel_cuda.cu.o");
  CHECK(compiled != (finished.out.find("fading is built without") != std::string::npos));
  if (std::filesystem::exists("/dev/nvidiactl")) return;
  auto with_plugin = environment;
  with_plugin["ATTNBENCH_PLUGIN_PATH"] = folder / "fading/build";
  const Finished refused =
      run(words("attnbench check fading --device cuda"), 580, with_plugin, folder.path());
  CHECK(refused.exit_code == 3);
  CHECK_THAT(refused.err, Contains("the device cuda cannot be used: "));
}
