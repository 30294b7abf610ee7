// attnbench status --watch on a submission, with stand-ins for Slurm's programs.
#include <cstdlib>
#include <filesystem>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench;
namespace fs = std::filesystem;
using Catch::Matchers::Contains;

namespace {

void write_program(const fs::path& file, const std::string& text) {
  test::write_file(file, "#!/bin/sh\n" + text);
  fs::permissions(file, fs::perms::owner_all);
}

}  // namespace

TEST_CASE("status --watch looks again until nothing is in the queue",
          "[program][cluster][processes]") {
  const test::TemporaryFolder folder;
  const std::string bin = folder / "bin";
  fs::create_directories(bin);
  const std::map<std::string, std::string> environment{{"PATH", bin + ":" + std::getenv("PATH")}};
  write_program(bin + "/sbatch", "echo 4711\n");
  // The task waits, runs, and is gone.
  write_program(bin + "/squeue", "looks=$(cat " + bin +
                                     "/looks 2>/dev/null || echo 0)\n"
                                     "echo $((looks + 1)) >" +
                                     bin +
                                     "/looks\n"
                                     "case $looks in\n"
                                     "0) echo '4711_1|PENDING|(Resources)' ;;\n"
                                     "1) echo '4711_1|RUNNING|node7' ;;\n"
                                     "esac\n");
  test::write_file(folder / "tiny.json",
                   R"({"name": "tiny", "task": "kernel", "set": {"length": 8, "head_dim": 4},
                       "mechanisms": ["softmax"]})");
  const auto submitted =
      test::call("submit tiny.json --jobs 1 --out out", environment, folder.path());
  INFO(submitted.out << submitted.err);
  REQUIRE(submitted.exit_code == 0);

  const auto watched = test::call("status out --watch --every 0.05", environment, folder.path());
  INFO(watched.out << watched.err);
  CHECK(watched.exit_code == 5);  // the shard has measured nothing
  CHECK(test::read_file(bin + "/looks") == "3\n");
  const std::size_t pending = watched.out.find("1 shard: 1 pending");
  const std::size_t running = watched.out.find("1 shard: 1 running");
  const std::size_t gone = watched.out.find("1 shard: 1 not started");
  REQUIRE(gone != std::string::npos);
  CHECK(pending < running);
  CHECK(running < gone);
  CHECK_THAT(watched.out, Contains("(Resources)") && Contains("node7") &&
                              Contains("nothing is at work: attnbench submit --again"));
}
