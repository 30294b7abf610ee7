// attnbench data lra.…: preparing, listing and showing, and runs that find what is there.
#include <signal.h>

#include <algorithm>

#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

const std::string small_listops =
    "lra.listops --set length_minimum=4 --set length_maximum=30 --set depth=4 "
    "--set train_examples=300 --set validation_examples=40 --set test_examples=40 ";

/// Cells of the small ListOps rows above.
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
  const std::string data = folder / "data";
  const std::string line = "data " + small_listops + "--show 3 --out " + data + "/listops";
  const Finished done = call(line);
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  CHECK_THAT(done.out, Contains("380 rows") && Contains("train: 300 rows of") && Contains(" ]\n"));
  CHECK_THAT(done.err, Contains("380 of 380 rows (100 %)"));
  CHECK_THAT(call(line).out, Contains("there already"));

  const Finished listed = call("data --list --data " + data);
  CHECK(listed.exit_code == 0);
  CHECK_THAT(listed.out, Contains("lra.listops") && Contains("length_maximum=30") &&
                             Contains("missing: lra.text") && Contains("aclImdb_v1.tar.gz"));
  CHECK(call("data --list", {{"ATTNBENCH_DATA", data}}).out == listed.out);
}

TEST_CASE("rows are shown whole where no terminal reads them", "[lra]") {
  const TemporaryFolder folder;
  const Finished done = call(
      "data lra.listops --set length_minimum=900 --set train_examples=2 --set test_examples=1 "
      "--set validation_examples=1 --show 1 --out " +
      (folder / "data").string());
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  const std::size_t begin = done.out.find("\t[");
  REQUIRE(begin != std::string::npos);
  const std::string row = done.out.substr(begin + 1, done.out.find('\n', begin + 1) - begin - 1);
  CHECK(std::count(row.begin(), row.end(), ' ') >= 899);
}

TEST_CASE("prepared data are exported, and read again as the same rows", "[lra]") {
  const TemporaryFolder folder;
  const std::string data = folder / "data";
  const Finished made =
      call("data " + small_listops + "--out " + data + " --export " + (folder / "first").string());
  INFO(made.err);
  REQUIRE(made.exit_code == 0);
  CHECK_THAT(made.out, Contains("basic_train.tsv") && Contains("300"));
  const Finished found =
      call("data lra.listops --data " + data + " --export " + (folder / "tables").string());
  INFO(found.err);
  REQUIRE(found.exit_code == 0);
  CHECK(read_file(folder / "tables/basic_test.tsv") == read_file(folder / "first/basic_test.tsv"));
  const Finished again = call("data lra.listops --set source=published --from " +
                              (folder / "tables").string() + " --out " + data);
  REQUIRE(again.exit_code == 0);
  const auto content = [](const std::string& out) { return out.substr(out.find("content "), 40); };
  CHECK(content(again.out) == content(made.out));

  const std::string to = folder / "to";
  REQUIRE(call("data lra.listops --data " + data + " --set source=generated --as arrays --export " +
               (folder / "arrays").string())
              .exit_code == 0);
  CHECK(fs::exists(folder / "arrays/test.labels.npy"));
  for (const auto& [line, why] : std::map<std::string, std::string>{
           {"lra.listops --data " + data, "say with --set in what they differ"},
           {"lra.listops --data " + (folder / "none").string(), "attnbench data lra.listops --out"},
           {"lra.listops --data " + data + " --show 3", "--out DIR"},
           {"lra.image --as published", "CIFAR-10 was published in colour"},
           {"lra.pathfinder --as published", "--as arrays"}}) {
    const Finished bad = call("data " + line + " --export " + to);
    INFO(bad.err);
    CHECK(bad.exit_code == 2);
    CHECK_THAT(bad.err, Contains(why));
    CHECK_FALSE(fs::exists(to));
  }
}

TEST_CASE("images are shown on a sheet", "[lra]") {
  const TemporaryFolder folder;
  const Finished done = call(
      "data lra.pathfinder --set train_examples=24 --set validation_examples=2 "
      "--set test_examples=2 --show 24 --out " +
      (folder / "p").string());
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  std::string sheet;
  for (const auto& entry : fs::directory_iterator(folder / "p")) {
    if (entry.path().extension() == ".png") sheet = read_file(entry.path());
  }
  CHECK(sheet.substr(1, 3) == "PNG");
}

// What it then goes on to is held in tests/tasks/data/prepare.cpp.
TEST_CASE("an interrupted preparation says that it can go on", "[lra][processes]") {
  const TemporaryFolder folder;
  Running broken(words(program() +
                       " data lra.pathfinder --set train_examples=100000 --threads 1 "
                       "--out " +
                       (folder / "data").string()),
                 folder / "output");
  REQUIRE(wait_until([&] {
    std::uintmax_t bytes = 0;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(folder / "data", none)) {
      bytes += fs::file_size(entry.path(), none);
    }
    return bytes > 1'000'000;
  }));
  broken.signal(SIGINT);
  REQUIRE(broken.wait() == 130);
  CHECK_THAT(read_file(folder / "output"), Contains("continues from there"));
}

TEST_CASE("data that cannot be prepared are refused with the remedy, and no file is left",
          "[lra]") {
  const TemporaryFolder folder;
  const std::string out = folder / "out";
  const std::string other = folder / "other";
  write_file(folder / "other/notes.md", "no data");
  write_file(folder / "cut.tar.gz", "\x1f\x8b\x08");
  for (const auto& [line, why] : std::map<std::string, std::string>{
           {"lra.text", "--from aclImdb_v1.tar.gz"},
           {"lra.text --from " + other, "notes.md"},
           {"lra.text --from " + (folder / "cut.tar.gz").string(), "cut.tar.gz"},
           {"lra.text --from " + (folder / "none").string(), "none"},
           {"lra.pathfinder --set side=48", "side is 48"},
           {"lra.pathfinder --set sid=32", "side"},
           {"lra.pathfinder --from " + other, "notes.md"},
           {"lra.listops --set depth=1", "widen the lengths"},
           {"lra.listops --seed 3", "data_seed"},
           {"lra.listops --raw", "nothing is read: no --raw"},
           {"lra.retrieval --raw --from " + other, "notes.md"},
           {"lra.listop", "lra.listops"},
           {"mqar --from " + other, "lra.listops"}}) {
    const Finished bad = call("data " + line + " --out " + out);
    INFO(bad.err);
    CHECK(bad.exit_code == 2);
    CHECK_THAT(bad.err, Contains(why));
    CHECK(files_below(out) == 0);
  }
  CHECK(call("data lra.listops").exit_code == 2);
  CHECK(call("data").exit_code == 2);
}

TEST_CASE("cells without their data are skipped with the command that prepares them", "[lra]") {
  const TemporaryFolder folder;
  const std::string suite = listops_suite(folder);
  const std::string data = folder / "data";
  const std::string command = "attnbench data lra.listops";
  fs::create_directories(data);
  // What was forecast without the data is not remembered once they are there, nor the reverse.
  const auto plan = [&] { return call("plan " + suite + " --data " + data).out; };
  CHECK_THAT(plan(), Contains("skipped") && Contains(command));

  const Finished skipped =
      call("run " + suite + " --data " + data + " --no-report --out " + (folder / "run").string());
  INFO(skipped.err);
  CHECK(skipped.exit_code == 3);  // nothing was measured
  const Json record = cells_of(folder / "run").at("softmax");
  CHECK(record["status"] == "skipped");
  CHECK_THAT(record["reason"].get<std::string>(),
             Contains(command) && Contains("length_maximum=30"));
  CHECK(call("run " + suite + " --data " + (folder / "nowhere").string()).exit_code == 2);

  REQUIRE(call("data " + small_listops + "--out " + data).exit_code == 0);
  CHECK_THAT(plan(), !Contains("skipped"));
  fs::remove_all(data);
  fs::create_directories(data);
  CHECK_THAT(plan(), Contains("skipped"));
}
