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
  CHECK(found["devices"]["cuda"].contains("refusal") != found["devices"]["cuda"].contains("card"));
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

TEST_CASE("doctor calls a machine too disturbed by its exit code", "[doctor]") {
  // No machine repeats work within 1 in 10^9, and none is ten times slower than itself.
  const auto ended = [](const char* most) {
    return test::run({test::program(), "doctor", "--quick", "--spread-most", most, "--json"}, 60);
  };
  const test::Finished strict = ended("1e-9");
  INFO(strict.out << strict.err);
  CHECK(strict.exit_code == 4);
  CHECK(strict.err.find("too disturbed: the same work differs from itself by ") !=
        std::string::npos);
  const Json found = Json::parse(strict.out);
  CHECK(found["noise"]["spread"].get<double>() > 1e-9);
  CHECK_FALSE(found.contains("ceilings"));
  const test::Finished lenient = ended("10");
  INFO(lenient.err);
  CHECK(lenient.exit_code == 0);
  CHECK(ended("-1").exit_code == 2);
}

TEST_CASE("doctor says in a line why no card is used, and ends with 3 where one was named",
          "[doctor]") {
  const test::Finished plain = test::run({test::program(), "doctor", "--quick"}, 60);
  if (plain.out.find("cuda  cannot be used: ") == std::string::npos) return;  // there is a card
  CHECK(plain.exit_code == 0);
  const test::Finished named = test::run({test::program(), "doctor", "--device", "cuda:1"}, 60);
  INFO(named.out << named.err);
  CHECK(named.exit_code == 3);
  CHECK(named.out.empty());
  CHECK(named.err.find("the device cuda:1 cannot be used: ") != std::string::npos);
}

TEST_CASE("doctor of the CPU alone, and of what is no device", "[doctor]") {
  const test::Finished cpu =
      test::run({test::program(), "doctor", "--quick", "--device", "cpu", "--json"}, 60);
  INFO(cpu.err);
  REQUIRE(cpu.exit_code == 0);
  CHECK(Json::parse(cpu.out)["devices"].empty());
  for (const char* word : {"gpu", "cuda:x", "cuda:", "cuda:-1"}) {
    for (const char* command : {"doctor", "check"}) {
      const test::Finished refused = test::run({test::program(), command, "--device", word}, 60);
      INFO(command << " " << word << ": " << refused.err);
      CHECK(refused.exit_code == 2);
      CHECK(refused.err.find("expected cpu, cuda or cuda:NUMBER") != std::string::npos);
    }
  }
}

TEST_CASE("doctor without a worker says so and ends with 3", "[doctor]") {
  const test::TemporaryFolder folder;
  std::filesystem::copy_file(test::program(), folder / "attnbench");
  const test::Finished finished =
      test::run({(folder / "attnbench").string(), "doctor", "--quick"}, 60);
  CHECK(finished.exit_code == 3);
  CHECK(finished.out.find("no worker at") != std::string::npos);
  CHECK(finished.err.find("cannot measure") != std::string::npos);
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
