// attnbench doctor as a user runs it.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench;
using Json = nlohmann::json;

TEST_CASE("doctor finds a machine that can measure", "[doctor]") {
  const test::Finished finished = test::run({test::program(), "doctor", "--quick", "--json"}, 60);
  INFO(finished.err);
  REQUIRE(finished.exit_code == 0);
  const Json found = Json::parse(finished.out);
  CHECK(found["worker"]["works"] == true);
  CHECK(found["worker"]["start_seconds"].get<double>() > 0);
  CHECK(found["machine"]["threads"].get<int>() >= 1);
  CHECK(found["places"].contains("cache"));
  CHECK_FALSE(found.contains("ceilings"));
  // Either what it is or why it cannot be used.
  CHECK(found["devices"]["cuda"].size() == 1);
}

TEST_CASE("doctor measures ceilings and noise, and says what spoils them", "[doctor]") {
  const test::Finished finished =
      test::run({test::program(), "doctor"}, 60, {{"OPENBLAS_CORETYPE", "Haswell"}});
  INFO(finished.out << finished.err);
  REQUIRE(finished.exit_code == 0);
  for (const char* word : {"Machine", "Worker", "Devices", "Ceilings", "gemm_bfloat16",
                           "bandwidth_dram", "Noise", "Places", "OPENBLAS_CORETYPE=Haswell"}) {
    INFO(word);
    CHECK(finished.out.find(word) != std::string::npos);
  }
}

TEST_CASE("doctor without a worker says so and ends with 3", "[doctor]") {
  const test::TemporaryFolder folder;
  std::filesystem::copy_file(test::program(), folder / "attnbench");
  const test::Finished finished =
      test::run({(folder / "attnbench").string(), "doctor", "--quick"}, 60);
  CHECK(finished.exit_code == 3);
  CHECK(finished.out.find("no worker at") != std::string::npos);
  CHECK(finished.out.find("cannot measure") != std::string::npos);
}

TEST_CASE("doctor names a plugin that cannot be taken, and ends with 3", "[doctor]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "broken.so", "this is no library");
  const test::Finished finished = test::run(
      {test::program(), "doctor", "--quick", "--plugin", (folder / "broken.so").string()}, 60);
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 3);
  CHECK((finished.out + finished.err).find("broken.so") != std::string::npos);
}
