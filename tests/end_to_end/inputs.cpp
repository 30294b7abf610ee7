// Files and command lines that somebody broke: each ends at once, with a message that names file
// and place, and without what was in the way being touched.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench;
using Catch::Contains;
using Catch::StartsWith;
using Json = nlohmann::json;
namespace fs = std::filesystem;

namespace {

const std::string inputs_fixture = test::source_folder() + "/tests/reports/fixture.json";

/// The program in a folder, with a gibibyte of address space.
test::Finished limited(const std::vector<std::string>& words, const std::string& folder) {
  // A catalogue in the cache, so that no call has to start a worker.
  static const bool warm = test::call("list").exit_code == 0;
  CHECK(warm);
  std::vector<std::string> all{"sh", "-c", "ulimit -v 1048576; exec \"$0\" \"$@\"",
                               test::program()};
  all.insert(all.end(), words.begin(), words.end());
  return test::run(all, 580, {}, folder);
}

/// The message of a call that must be refused.
std::string refused(const std::vector<std::string>& words, const std::string& folder) {
  const test::Finished done = limited(words, folder);
  INFO(words.back().substr(0, 200) << " said: " << done.err.substr(0, 3000));
  CHECK(done.exit_code >= 2);
  CHECK(done.exit_code <= 3);
  CHECK(done.err.size() <= 2048);
  CHECK_THAT(done.err, StartsWith("attnbench: ") && !Contains("json.exception") &&
                           !Contains("\x1b") && !Contains("\x07"));
  return done.err;
}

std::string repeated(const std::string& text, std::size_t count) {
  std::string all;
  for (std::size_t i = 0; i < count; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("devices and pipes are not read in the place of files", "[program]") {
  const test::TemporaryFolder folder;
  const std::string here = folder.path();
  test::write_file(folder / "zero.json",
                   "{\"name\": \"s\", \"task\": \"kernel\",\n\"published\": \"/dev/zero\", "
                   "\"mechanisms\": [\"latte\"]}");
  CHECK_THAT(refused({"list", "--plugin", "/dev/zero"}, here), Contains("/dev/zero: "));
  CHECK_THAT(refused({"validate", "zero.json"}, here), Contains("zero.json:2: /published: "));
  for (const char* command : {"validate", "report"}) {
    CHECK_THAT(refused({command, "/dev/zero"}, here), Contains("/dev/zero: "));
  }
  CHECK_THAT(refused({"compare", "/dev/zero", "/dev/zero"}, here), Contains("/dev/zero: "));
  CHECK_THAT(refused({"import", "/dev/zero", "--beside", inputs_fixture, "--out", "out"}, here),
             Contains("/dev/zero: "));
  fs::create_directory(folder / "run");
  fs::create_symlink("/dev/zero", folder / "run/journal.jsonl");
  CHECK_THAT(refused({"run", "--resume", "run"}, here), Contains("journal.jsonl: "));
}

TEST_CASE("JSON nested fifty thousand deep is refused with its place", "[program]") {
  const test::TemporaryFolder folder;
  const std::string here = folder.path();
  const std::string deep = repeated("{\"a\":", 50000) + "1" + repeated("}", 50000);
  test::write_file(folder / "deep.json", deep);
  fs::create_directory(folder / "run");
  test::write_file(folder / "run/journal.jsonl", deep + "\n");
  CHECK_THAT(refused({"report", "deep.json"}, here), Contains("deep.json:1:"));
  CHECK_THAT(refused({"compare", "deep.json", inputs_fixture}, here), Contains("deep.json:1:"));
  CHECK_THAT(refused({"validate", "deep.json"}, here), Contains("deep.json:1: "));
  CHECK_THAT(refused({"import", "deep.json", "--beside", inputs_fixture, "--out", "out"}, here),
             Contains("deep.json:1:"));
  CHECK_THAT(refused({"run", "--resume", "run"}, here), Contains("journal.jsonl:1:"));
  CHECK_THAT(refused({"plan", "latte", "--set", "window=" + repeated("[", 50000)}, here),
             Contains("--set window="));
}

TEST_CASE("long and hostile words are quoted short and printable", "[program]") {
  const test::TemporaryFolder folder;
  const std::string here = folder.path();
  const std::string word = "\x1b[31m\x07" + std::string(100000, 'a');
  refused({word}, here);
  refused({"run", word}, here);
  refused({"plan", "latte", "--only", word}, here);
  refused({"plan", "latte", "--only", "(" + word}, here);
  refused({"plan", "latte", "--set", word + "=1"}, here);
  refused({"plan", "latte", "--" + word}, here);
  refused({"plan", "latte", "--profile", word}, here);
  refused({"report", word}, here);
  refused({"apply", word, "--query", word, "--out", "out"}, here);
  refused({"data", word, "--out", "out"}, here);
  refused({"run", "latte", "--progress", word}, here);
  refused({"plan", "latte", "--device", word}, here);
  CHECK_THAT(refused({"plan", "latte", "--set", "pattern=\xff"}, here), Contains("not UTF-8"));
  test::write_file(folder / "long.json",
                   "{\"name\": \"" + std::string(40000, 'a') +
                       "\", \"task\": \"kernel\",\n\"mechanisms\": [\"latte\"]}");
  CHECK_THAT(refused({"validate", "long.json"}, here), Contains("long.json:1: /name: "));
}

TEST_CASE("plan answers at once for sizes that no machine has", "[program]") {
  const test::TemporaryFolder folder;
  const std::string here = folder.path();
  for (const char* set : {"value_dim=1..9223372036854775807", "length=68719476736",
                          "batch=68719476736", "heads=1..9223372036854775807"}) {
    CHECK_THAT(refused({"plan", "latte", "softmax", "--set", set}, here),
               Contains(std::string("--set ") + set + ": "));
  }
}

TEST_CASE("files that attnbench did not write are kept", "[program]") {
  const test::TemporaryFolder folder;
  const std::string here = folder.path();
  const auto keep = [&](const std::string& name) {
    fs::create_directories((folder / name).parent_path());
    test::write_file(folder / name, "mine");
  };
  for (const char* name : {"out/index.html", "out/tables/result.csv", "out/figures/mine.svg",
                           "out/figures/mine.vl.json", "out/result.json", "notes.md"}) {
    keep(name);
  }
  CHECK_THAT(refused({"report", inputs_fixture, "--no-render", "--out", "out"}, here),
             Contains("index.html, tables/result.csv"));
  CHECK_THAT(refused({"run", "softmax", "--length", "8", "--out", "out"}, here),
             Contains("result.json") && Contains("--force"));
  CHECK_THAT(refused({"ab", "softmax", "latte", "--length", "8", "--out", "out"}, here),
             Contains("result.json"));
  CHECK_THAT(refused({"check", "latte", "--out", "notes.md"}, here), Contains("notes.md"));
  CHECK_THAT(refused({"check", "latte", "--out", "nowhere/notes.md"}, here), Contains("nowhere"));
  CHECK_THAT(refused({"data", "mqar", "--out", "out"}, here), Contains("holds files already"));
  for (const char* name : {"out/index.html", "out/tables/result.csv", "out/figures/mine.svg",
                           "out/figures/mine.vl.json", "out/result.json", "notes.md"}) {
    CHECK(test::read_file(folder / name) == "mine");
  }
  const auto forced =
      limited({"report", inputs_fixture, "--no-render", "--out", "out", "--force"}, here);
  CHECK(forced.exit_code == 0);
  CHECK(test::read_file(folder / "out/index.html") != "mine");
  CHECK(test::read_file(folder / "out/figures/mine.svg") == "mine");
  CHECK(test::read_file(folder / "out/figures/mine.vl.json") == "mine");
}

TEST_CASE("no control character of a result or an array reaches the terminal", "[program]") {
  const test::TemporaryFolder folder;
  const std::string here = folder.path();
  Json result = Json::parse(test::read_file(inputs_fixture));
  for (Json& cell : result["attnbench"]["cells"]) cell["label"] = "\x1b[31mred";
  test::write_file(folder / "result.json", result.dump());
  const auto compared = limited({"compare", "result.json", "result.json"}, here);
  CHECK(compared.exit_code == 0);
  CHECK_THAT(compared.out, Contains("\\u001b[31mred") && !Contains("\x1b"));
  // The header of an array: its length in two bytes, then a dictionary.
  const std::string header = "{'descr': '\x1b[31m', 'fortran_order': False, 'shape': (1,)}\n";
  test::write_file(folder / "bad.npy", std::string("\x93NUMPY\x01\x00", 8) +
                                           static_cast<char>(header.size()) + std::string(1, '\0') +
                                           header);
  CHECK_THAT(refused({"apply", "softmax", "--pattern", "causal", "--query", "bad.npy", "--key",
                      "bad.npy", "--value", "bad.npy", "--out", "out"},
                     here),
             Contains("bad.npy: ") && Contains("\\u001b[31m"));
}

TEST_CASE("a failure while planning is not remembered", "[program]") {
  const test::TemporaryFolder folder;
  const std::map<std::string, std::string> cache{{"XDG_CACHE_HOME", folder / "cache"}};
  const std::string plan = "plan latte softmax --length 64 --json";
  // So that the catalogue is there, and the failure is one of the forecast.
  test::call("list", cache);
  for (const char* limit : {"5", "6", "7", "8"}) {
    test::run(
        {"sh", "-c", std::string("ulimit -n ") + limit + "; exec \"$0\" " + plan, test::program()},
        580, cache);
  }
  const test::Finished done = test::call(plan, cache);
  INFO(done.err);
  REQUIRE(done.exit_code == 0);
  for (const Json& cell : Json::parse(done.out)[0]["cells"]) {
    CHECK(cell["forecast"]["supported"] == true);
    CHECK_FALSE(cell["forecast"].contains("status"));
  }
}
