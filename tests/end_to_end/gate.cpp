// attnbench gate and submit where what they call is not installed, and counts that are damaged.
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

const std::string counts_of_tree = test::source_folder() + "/tests/benchmarks/counts.json";

/// Run where no program is found by its name.
Finished run_bare(std::vector<std::string> words) {
  words.insert(words.begin(), program());
  return run(words, 580, {{"PATH", "/nowhere"}});
}

}  // namespace

TEST_CASE("gate without valgrind says how to get it", "[program][gate]") {
  const Finished finished = run_bare({"gate", "--counts", counts_of_tree});
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 3);
  CHECK_THAT(finished.err, Contains("valgrind") || Contains("attnbench-counts"));
}

TEST_CASE("gate refuses counts that are none, before it counts anything", "[program][gate]") {
  const TemporaryFolder folder;
  const std::string whole = read_file(counts_of_tree);
  std::string twice = whole;
  const std::string one = "\"one.float32.forward.512\": ";
  twice.insert(twice.find("\"instructions\": {") + 17, one + "1,\n" + one + "1,\n");
  std::string other = whole;
  other.replace(other.find("\"version\": 1"), 12, "\"version\": 7");
  std::string word = whole;
  word.insert(word.find("\"instructions\": {") + 17, one + "-,\n");
  const std::vector<std::pair<std::string, std::string>> damaged{
      {whole.substr(0, whole.size() / 2), "counts.json"},
      {twice, "is there twice"},
      {other, "/version"},
      {word + "\"", "counts.json"},
      {"", "counts.json"},
      {"[]", "counts.json"}};
  for (const auto& [text, complaint] : damaged) {
    write_file(folder / "counts.json", text);
    const Finished finished = run_bare({"gate", "--counts", folder / "counts.json"});
    INFO(complaint << "\n" << finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Contains(complaint));
    if (text.empty()) continue;
    const Finished updated = run_bare({"gate", "--update", "--counts", folder / "counts.json"});
    CHECK(updated.exit_code == 2);
    CHECK_THAT(updated.err, Contains("--force"));
    CHECK(read_file(folder / "counts.json") == text);
  }
  const Finished none = run_bare({"gate", "--counts", folder / "nowhere.json"});
  CHECK(none.exit_code == 2);
  CHECK_THAT(none.err, Contains("nowhere.json"));
}

TEST_CASE("submit without sbatch says so and submits nothing", "[program][cluster]") {
  const TemporaryFolder folder;
  const Finished finished =
      run_bare({"submit", "quickstart", "--jobs", "2", "--out", folder / "submission"});
  INFO(finished.out << finished.err);
  CHECK(finished.exit_code == 3);
  CHECK_THAT(finished.err, Contains("sbatch"));
}
