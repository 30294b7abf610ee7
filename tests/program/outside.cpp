// The plugin of tests/program/outside, built outside the tree and used as any mechanism is.
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

std::string build_plugin(const test::TemporaryFolder& folder) {
  const std::string source = std::string(ATTNBENCH_SOURCE_DIR) + "/tests/program/outside";
  const auto configured = test::run({"cmake", "-S", source, "-B", folder / "build", "-G", "Ninja",
                                     "-DCMAKE_BUILD_TYPE=Release",
                                     std::string("-DATTNBENCH_SOURCE=") + ATTNBENCH_SOURCE_DIR,
                                     std::string("-DATTNBENCH_BUILD=") + ATTNBENCH_BINARY_DIR,
                                     std::string("-DATTNBENCH_TORCH=") + ATTNBENCH_TORCH_FOLDER});
  INFO(configured.out << configured.err);
  REQUIRE(configured.exit_code == 0);
  const auto built = test::run({"cmake", "--build", folder / "build"}, 300);
  INFO(built.out << built.err);
  REQUIRE(built.exit_code == 0);
  return folder / "build/libfading.so";
}

}  // namespace

TEST_CASE("a plugin built outside the tree is listed, checked, run and drawn like the others") {
  const test::TemporaryFolder folder;
  const std::string plugin = build_plugin(folder);

  const auto described = test::run({test::program(), "describe", "fading", "--plugin", plugin});
  INFO(described.err);
  CHECK(described.exit_code == 0);
  CHECK(described.out.find("decay") != std::string::npos);

  const auto checked =
      test::run({test::program(), "check", "fading", "--no-growth", "--plugin", plugin}, 300);
  INFO(checked.out << checked.err);
  CHECK(checked.exit_code == 0);

  const auto ran = test::run({test::program(), "run", "fading", "softmax", "--length", "32,64",
                              "--rounds", "2", "--plugin", plugin, "--out", folder / "run"},
                             300);
  INFO(ran.out << ran.err);
  REQUIRE(ran.exit_code == 0);
  const Json result = Json::parse(test::read_file(folder / "run/result.json"));
  REQUIRE(result["attnbench"]["cells"].size() == 4);
  for (const Json& cell : result["attnbench"]["cells"]) {
    INFO(cell.dump(1));
    CHECK(cell["status"] == "ok");
    CHECK(cell["check"]["verdict"] == "ok");
  }
}
