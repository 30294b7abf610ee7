// attnbench data lra.…: preparing, resuming, listing and showing, and runs that find what is there.
#include <csignal>
#include <thread>

#include "tests/program/training_suite.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

Finished prepare(const std::vector<std::string>& words,
                 const std::map<std::string, std::string>& environment = {}) {
  std::vector<std::string> command{program(), "data"};
  command.insert(command.end(), words.begin(), words.end());
  return run(command, 120, environment);
}

std::vector<std::string> small_listops(const std::string& out) {
  return {"lra.listops",
          "--set",
          "length_minimum=4",
          "--set",
          "length_maximum=30",
          "--set",
          "depth=4",
          "--set",
          "train_examples=300",
          "--set",
          "validation_examples=40",
          "--set",
          "test_examples=40",
          "--out",
          out};
}

/// Cells of the small ListOps rows that are prepared above.
std::string listops_suite(const TemporaryFolder& folder) {
  const std::string file = folder / "listops.json";
  write_file(file, R"({"name": "listops", "task": "lra.listops", "mechanisms": ["softmax"],
    "set": {"length_minimum": 4, "length_maximum": 30, "depth": 4, "length": 32, "width": 8,
            "train_examples": 300, "validation_examples": 40, "test_examples": 40, "batch": 16,
            "epochs": 1}})");
  return file;
}

std::size_t files_below(const fs::path& folder) {
  if (!fs::exists(folder)) return 0;
  return static_cast<std::size_t>(
      std::distance(fs::recursive_directory_iterator(folder), fs::recursive_directory_iterator()));
}

}  // namespace

TEST_CASE("rows of ListOps are prepared, shown as text and listed", "[lra]") {
  const TemporaryFolder folder;
  const std::string out = folder / "data/listops";
  auto words = small_listops(out);
  words.insert(words.end(), {"--show", "3"});
  const Finished done = prepare(words);
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK_THAT(done.out, Contains("380 rows") && Contains("train: 300 rows of") && Contains(" ]\n"));
  CHECK_THAT(done.err, Contains("380 of 380 rows (100 %)"));
  CHECK_THAT(prepare(words).out, Contains("there already"));

  const Finished listed = prepare({"--list", "--data", folder / "data"});
  CHECK(listed.exit_code == 0);
  CHECK_THAT(listed.out, Contains("lra.listops") && Contains("length_maximum=30") &&
                             Contains("missing: lra.text") && Contains("aclImdb_v1.tar.gz"));
  CHECK(prepare({"--list"}, {{"ATTNBENCH_DATA", folder / "data"}}).out == listed.out);
}

TEST_CASE("images are shown on a sheet", "[lra]") {
  const TemporaryFolder folder;
  const Finished done =
      prepare({"lra.pathfinder", "--set", "train_examples=24", "--set", "validation_examples=2",
               "--set", "test_examples=2", "--out", folder / "p", "--show", "24"});
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  std::string sheet;
  for (const auto& entry : fs::directory_iterator(folder / "p")) {
    if (entry.path().extension() == ".png") sheet = read_file(entry.path());
  }
  CHECK(sheet.substr(1, 3) == "PNG");
}

TEST_CASE("an interrupted preparation goes on and gives the file of an unbroken one", "[lra]") {
  const TemporaryFolder folder;
  const auto words = [&](const std::string& out) {
    return std::vector<std::string>{program(),
                                    "data",
                                    "lra.pathfinder",
                                    "--set",
                                    "train_examples=30000",
                                    "--set",
                                    "validation_examples=10",
                                    "--set",
                                    "test_examples=10",
                                    "--threads",
                                    "1",
                                    "--out",
                                    out};
  };
  Running broken(words(folder / "broken"), folder / "output");
  const auto part_bytes = [&] {
    std::uintmax_t bytes = 0;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder / "broken", none)) {
      bytes += fs::file_size(entry.path(), none);
    }
    return bytes;
  };
  for (int i = 0; i < 600 && part_bytes() < 3'000'000; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  broken.signal(SIGINT);
  REQUIRE(broken.wait(30) == 130);
  CHECK_THAT(read_file(folder / "output"), Contains("continues from there"));
  const Finished resumed = run(words(folder / "broken"), 300);
  INFO(resumed.err);
  REQUIRE(resumed.exit_code == 0);
  CHECK_THAT(resumed.out, Contains("went on from row"));
  REQUIRE(run(words(folder / "whole"), 300).exit_code == 0);
  const fs::path name = fs::directory_iterator(folder / "whole")->path().filename();
  CHECK(read_file(folder / "broken" / name) == read_file(folder / "whole" / name));
}

TEST_CASE("data that cannot be prepared are refused with the remedy, and no file is left",
          "[lra]") {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  write_file(folder / "other/notes.md", "no data");
  write_file(folder / "cut.tar.gz", "\x1f\x8b\x08");
  const auto refused = [&](std::vector<std::string> words, const char* why) {
    words.insert(words.end(), {"--out", out});
    const Finished bad = prepare(words);
    INFO(bad.err);
    CHECK(bad.exit_code == 2);
    CHECK_THAT(bad.err, Contains(why));
    CHECK(files_below(out) == 0);
  };
  refused({"lra.text"}, "--from aclImdb_v1.tar.gz");
  refused({"lra.text", "--from", folder / "other"}, "notes.md");
  refused({"lra.text", "--from", folder / "cut.tar.gz"}, "cut.tar.gz");
  refused({"lra.text", "--from", folder / "none"}, "none");
  refused({"lra.pathfinder", "--set", "side=48"}, "side is 48");
  refused({"lra.pathfinder", "--set", "sid=32"}, "side");
  refused({"lra.pathfinder", "--from", folder / "other"}, "notes.md");
  refused({"lra.listops", "--set", "depth=1"}, "widen the lengths");
  refused({"lra.listops", "--seed", "3"}, "data_seed");
  refused({"lra.listop"}, "lra.listops");
  refused({"mqar", "--from", folder / "other"}, "lra.listops");
  CHECK(prepare({"lra.listops"}).exit_code == 2);
  CHECK(prepare({}).exit_code == 2);
}

TEST_CASE("cells without their data are skipped with the command that prepares them", "[lra]") {
  const TemporaryFolder folder;
  const std::string suite = listops_suite(folder);
  const auto environment = TrainingSuite::environment();
  const std::string command = "attnbench data lra.listops";
  fs::create_directories(folder / "data");

  const Finished planned =
      run({program(), "plan", suite, "--data", folder / "data"}, 60, environment);
  INFO(planned.err);
  CHECK(planned.exit_code == 0);
  CHECK_THAT(planned.out, Contains("skipped") && Contains(command));

  const std::vector<std::string> words{program(),       "run",         suite,   "--data",
                                       folder / "data", "--no-report", "--out", folder / "first"};
  const Finished skipped = run(words, 120, environment);
  INFO(skipped.err);
  CHECK(skipped.exit_code == 3);  // nothing was measured
  const Json record = Json::parse(read_file(folder / "first/result.json"))["attnbench"]["cells"][0];
  CHECK(record["status"] == "skipped");
  CHECK_THAT(record["reason"].get<std::string>(),
             Contains(command) && Contains("length_maximum=30"));

  CHECK(run({program(), "run", suite, "--data", folder / "nowhere"}, 60, environment).exit_code ==
        2);

  // What was forecast without the data is not remembered once they are there, nor the reverse.
  const auto plan = [&] {
    return run({program(), "plan", suite, "--data", folder / "data"}, 60, environment).out;
  };
  REQUIRE(prepare(small_listops(folder / "data")).exit_code == 0);
  CHECK_THAT(plan(), !Contains("skipped"));
  fs::remove_all(folder / "data");
  fs::create_directories(folder / "data");
  CHECK_THAT(plan(), Contains("skipped"));
}
