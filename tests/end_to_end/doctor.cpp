// attnbench doctor as a user runs it.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

TEST_CASE("doctor measures ceilings and noise, and says what spoils them", "[doctor]") {
  const Finished finished = call("doctor --keep-blas-core", {{"OPENBLAS_CORETYPE", "Prescott"}});
  INFO(finished.out << finished.err);
  REQUIRE(finished.exit_code == 0);
  for (const char* word : {"Machine", "Worker", "Devices", "Ceilings", "gemm_bfloat16",
                           "bandwidth_dram", "Noise", "Places"}) {
    CHECK_THAT(finished.out, Contains(word));
  }
  if (finished.out.find("openblas") == std::string::npos) return;
  CHECK_THAT(finished.out, Contains("OPENBLAS_CORETYPE=Prescott") &&
                               Contains("openblas Prescott (chosen by") &&
                               Contains("leave --keep-blas-core out"));
}

TEST_CASE("doctor finds a machine that can measure, or calls one too disturbed", "[doctor]") {
  // No machine is ten times slower than itself, and none repeats work within 1 in 10^9.
  const Finished finished = call("doctor --quick --spread-most 10 --json");
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

  const Finished strict = call("doctor --quick --spread-most 1e-9 --json --device cpu");
  INFO(strict.out << strict.err);
  CHECK(strict.exit_code == 4);
  CHECK_THAT(strict.err, Contains("too disturbed: the same work differs from itself by "));
  const Json disturbed = Json::parse(strict.out);
  CHECK(disturbed["noise"]["spread"].get<double>() > 1e-9);
  CHECK(disturbed["devices"].empty());
}

TEST_CASE("doctor says why no card is used, ends with 3 where one was named, with 2 on a slip",
          "[doctor]") {
  for (const std::string word : {"gpu", "cuda:x", "cuda:", "cuda:-1"}) {
    for (const std::string command : {"doctor", "check"}) {
      const Finished refused = call(command + " --device " + word);
      INFO(command << " " << word << ": " << refused.err);
      CHECK(refused.exit_code == 2);
      CHECK_THAT(refused.err, Contains("expected cpu, cuda or cuda:NUMBER"));
    }
  }
  CHECK(call("doctor --quick --spread-most -1").exit_code == 2);
  const Finished plain = call("doctor --quick");
  CHECK(plain.exit_code == 0);
  if (plain.out.find("cuda  cannot be used: ") == std::string::npos) return;  // there is a card
  const Finished named = call("doctor --device cuda:1");
  INFO(named.out << named.err);
  CHECK(named.exit_code == 3);
  CHECK(named.out.empty());
  CHECK_THAT(named.err, Contains("the device cuda:1 cannot be used: "));
}

TEST_CASE("doctor without a worker, or with a plugin that cannot be taken, ends with 3",
          "[doctor]") {
  const TemporaryFolder folder;
  std::filesystem::copy_file(program(), folder / "attnbench");
  const Finished alone = run({folder / "attnbench", "doctor", "--quick"});
  CHECK(alone.exit_code == 3);
  CHECK_THAT(alone.out, Contains("no worker at"));
  CHECK_THAT(alone.err, Contains("cannot measure"));
  write_file(folder / "broken.so", "this is no library");
  const Finished broken = call("doctor --quick --plugin " + (folder / "broken.so").string());
  INFO(broken.out << broken.err);
  CHECK(broken.exit_code == 3);
  CHECK_THAT(broken.out + broken.err, Contains("broken.so"));
}
