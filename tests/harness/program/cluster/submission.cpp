#include "harness/program/cluster/submission.hpp"

#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench;
using cluster::Submission;
using cluster::SubmissionFolder;

namespace {

Submission a_submission() {
  Submission submission;
  submission.suite = "two words";
  submission.program = "/opt/attn bench/attnbench";
  submission.started_in = "/";
  submission.run = {"run", "suite.json", "--only", "it's"};
  submission.jobs = 4;
  submission.exclusive = true;
  submission.options = {"--partition=long", "--time=2:00:00", "--comment=a \"b\""};
  submission.cells = {{"c1", 5}, {"c2", 0}};
  return submission;
}

void make_program(Submission& submission, const test::TemporaryFolder& folder) {
  submission.program = folder / "program";
  test::write_file(submission.program, "#!/bin/sh\nprintf '<%s>' \"$@\"\n");
  std::filesystem::permissions(submission.program, std::filesystem::perms::owner_all);
}

}  // namespace

TEST_CASE("a submission's scripts are bash, and quote what needs it", "[cluster]") {
  const test::TemporaryFolder home;
  const SubmissionFolder folder{home / "a folder"};
  std::filesystem::create_directories(folder.path);
  Submission submission = a_submission();
  make_program(submission, home);
  test::write_file(folder.shard_script(), cluster::shard_script(submission, folder));
  const std::string script = test::read_file(folder.shard_script());
  CHECK_THAT(script, Catch::Contains("#SBATCH --job-name=\"attnbench two words\"\n"));
  CHECK_THAT(script, Catch::Contains("#SBATCH --comment=\"a \\\"b\\\"\"\n"));
  CHECK_THAT(script, Catch::Contains("#SBATCH --exclusive\n") &&
                         Catch::Contains("#SBATCH --requeue\n") &&
                         Catch::Contains("#SBATCH --partition=\"long\"\n"));
  const auto run = [&] {
    return test::run({"bash", folder.shard_script().string()}, 20, {{"SLURM_ARRAY_TASK_ID", "3"}});
  };
  // A node that does not see the folder's record says so.
  const auto blind = run();
  CHECK(blind.exit_code == 3);
  CHECK_THAT(blind.err, Catch::Contains("does not see") && Catch::Contains("share"));

  cluster::write_submission(folder, submission);
  const std::string own = (folder.path / "shards/3").string();
  CHECK(run().out == "<run><suite.json><--only><it's><--out><" + own +
                         "><--shard><3/4><--progress><plain><--no-report>");
  std::filesystem::create_directories(own);
  test::write_file(own + "/journal.jsonl", "");
  CHECK(run().out == "<run><--resume><" + own + "><--shard><3/4><--progress><plain><--no-report>");
}

TEST_CASE("a script's own lines hold no line break, and no pattern of Slurm by accident",
          "[cluster]") {
  Submission submission = a_submission();
  CHECK_THROWS_WITH(cluster::shard_script(submission, {"/tmp/a\nb"}),
                    Catch::Contains("/tmp/a") && Catch::Contains("line break"));
  CHECK_THAT(cluster::shard_script(submission, {"/tmp/50%a"}),
             Catch::Contains("#SBATCH --output=\"/tmp/50%%a/logs/shard_%a.log\"\n"));
  submission.suite = "two\rlines";
  CHECK_THROWS_WITH(cluster::merge_script(submission, {"/tmp/a"}), Catch::Contains("two"));
}

TEST_CASE("a setup is sourced first, and its failure ends the task", "[cluster]") {
  const test::TemporaryFolder home;
  const SubmissionFolder folder{home.path()};
  Submission submission = a_submission();
  make_program(submission, home);
  submission.setup = true;
  submission.run = {"run"};
  cluster::write_submission(folder, submission);
  test::write_file(folder.merge_script(), cluster::merge_script(submission, folder));
  test::write_file(folder.setup(), "echo \"set up\"\n");
  const auto run = [&] { return test::run({"bash", folder.merge_script().string()}, 20); };
  CHECK(run().out ==
        "set up\n<merge><" + folder.path.string() + "><--out><" + folder.merged().string() + ">");
  test::write_file(folder.setup(), "false\n");
  CHECK(run().exit_code == 3);
  // The merge runs where the shards may, but needs no time and no node of its own.
  const std::string script = test::read_file(folder.merge_script());
  CHECK_THAT(script, Catch::Contains("--partition=\"long\"") && !Catch::Contains("--time") &&
                         !Catch::Contains("--exclusive"));
}

TEST_CASE("shared nodes are not asked for whole", "[cluster]") {
  Submission submission = a_submission();
  submission.exclusive = false;
  CHECK_THAT(cluster::shard_script(submission, {"/x"}), !Catch::Contains("exclusive"));
}

TEST_CASE("options of sbatch are taken with and without dashes, ours are refused", "[cluster]") {
  CHECK(cluster::sbatch_option("partition=long") == "--partition=long");
  CHECK(cluster::sbatch_option("--hold") == "--hold");
  CHECK(cluster::sbatch_option("-plong") == "-plong");
  CHECK(cluster::sbatch_option("--account=a b") == "--account=a b");
  for (const char* refused : {"", "array=1-3", "--array=1-3", "-a1-3", "dependency=afterok:3",
                              "--wrap=ls", "output=x", "exclusive", "--exclusive=user", "x\ny"}) {
    INFO(refused);
    CHECK_THROWS_AS(cluster::sbatch_option(refused), UsageFailure);
  }
}

TEST_CASE("a submission reads back as it was written, and damage is named", "[cluster]") {
  const test::TemporaryFolder home;
  const SubmissionFolder folder{home.path()};
  CHECK_FALSE(cluster::holds_submission(home.path()));
  CHECK_THROWS_AS(cluster::read_submission(folder), UsageFailure);
  Submission submission = a_submission();
  submission.submitted.push_back({"12", "13", {1, 2, 3, 4}, "2026-01-01T00:00:00Z"});
  cluster::write_submission(folder, submission);
  const auto json = nlohmann::json(cluster::read_submission(folder));
  CHECK(json == nlohmann::json(submission));
  for (const auto& [key, value] :
       {std::pair<std::string, nlohmann::json>{"jobs", 0}, {"schema", 2}, {"cells", 3}}) {
    INFO(key);
    nlohmann::json damaged = json;
    damaged[key] = value;
    test::write_file(folder.record(), damaged.dump());
    CHECK_THROWS_AS(cluster::read_submission(folder), UsageFailure);
  }
  test::write_file(folder.record(), "{\"schema\": 1");
  CHECK_THROWS_AS(cluster::read_submission(folder), UsageFailure);
}

TEST_CASE("indices are written as Slurm's arrays are", "[cluster]") {
  CHECK(cluster::array_text({1, 2, 3, 4}) == "1-4");
  CHECK(cluster::array_text({2}) == "2");
  CHECK(cluster::array_text({1, 3, 4, 9}) == "1,3-4,9");
}
