#include "harness/program/run/folder/journal.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench::run;
using attnbench::test::read_file;
using attnbench::test::TemporaryFolder;
using attnbench::test::write_file;

namespace {

const Json header = {{"type", "header"},          {"schema", journal_schema},
                     {"suite", Json::object()},   {"cells", Json::array()},
                     {"measure", Json::object()}, {"identity", {{"binary", "b1"}}}};

Json record(const std::string& cell, int round) {
  return {{"type", "record"},
          {"cell", cell},
          {"round", round},
          {"status", "ok"},
          {"measured", Json::object()}};
}

}  // namespace

TEST_CASE("a journal gives back what was appended", "[journal]") {
  TemporaryFolder folder;
  {
    Journal journal(folder / "journal.jsonl");
    journal.append(header);
    journal.append({{"type", "probe"},
                    {"device", "cpu"},
                    {"ceilings", {{"fma", 1}}},
                    {"machine", Json::object()}});
    for (int round = 0; round < 2; ++round) {
      for (const char* cell : {"a", "b"}) journal.append(record(cell, round));
    }
  }
  const JournalContents contents = read_journal(folder / "journal.jsonl");
  CHECK(contents.header == header);
  CHECK(contents.probes.at("cpu").ceilings.at("fma") == 1);
  REQUIRE(contents.rounds.size() == 2);
  CHECK(Json(contents.rounds.at("b")) == Json{record("b", 0), record("b", 1)});
}

TEST_CASE("records before a repeat line no longer hold", "[journal]") {
  TemporaryFolder folder;
  Journal journal(folder / "journal.jsonl");
  journal.append(header);
  journal.append(record("a", 0));
  journal.append(record("b", 0));
  Json second = header;
  second["identity"]["binary"] = "b2";
  journal.append(second);
  journal.append({{"type", "repeat"}, {"cell", "a"}, {"reason", "built anew"}});
  CHECK(read_journal(folder / "journal.jsonl").rounds.count("a") == 0);
  journal.append(record("a", 0));
  const JournalContents contents = read_journal(folder / "journal.jsonl");
  CHECK(contents.rounds.at("a").size() == 1);
  CHECK(contents.identities.at("a").at("binary") == "b2");
  CHECK(contents.identities.at("b").at("binary") == "b1");
}

TEST_CASE("a last line that was cut off is left out, and cut before more is written", "[journal]") {
  TemporaryFolder folder;
  const auto file = folder / "journal.jsonl";
  const std::string whole = header.dump() + "\n" + record("a", 0).dump() + "\n";
  for (const std::string& broken : {std::string("{\"type\":\"rec"), record("b", 0).dump()}) {
    write_file(file, whole + broken);
    CHECK(read_journal(file).rounds.size() == 1);
    CHECK(read_journal(file).whole_bytes == whole.size());
    Journal(file).append(record("c", 0));
    CHECK(read_file(file) == whole + record("c", 0).dump() + "\n");
  }
}

TEST_CASE("a file that is no journal is refused with the line", "[journal]") {
  using Catch::Matchers::Contains;
  TemporaryFolder folder;
  const auto file = folder / "journal.jsonl";
  CHECK_THROWS_WITH(read_journal(file), Contains("journal.jsonl"));
  write_file(file, header.dump() + "\nnonsense\n" + record("a", 0).dump() + "\n");
  CHECK_THROWS_WITH(read_journal(file), Contains(":2:") && Contains("take the line out"));
  // Without its first line nothing is left to go on with.
  write_file(file, "nonsense\n" + record("a", 0).dump() + "\n");
  CHECK_THROWS_WITH(read_journal(file), Contains(":1:") && Contains("start a new one") &&
                                            !Contains("take the line out"));
  for (const auto& [key, value] : std::vector<std::pair<std::string, Json>>{{"schema", 1.5},
                                                                            {"schema", "1"},
                                                                            {"identity", "b1"},
                                                                            {"seed", -1},
                                                                            {"cells", {3}},
                                                                            {"suite", nullptr}}) {
    Json odd = header;
    odd[key] = value;
    write_file(file, odd.dump() + "\n" + record("a", 0).dump() + "\n");
    CHECK_THROWS_WITH(read_journal(file), Contains("journal.jsonl:1: ") && Contains("/" + key) &&
                                              Contains("expected") && Contains("start a new run"));
  }
  write_file(file, "{\"type\":\"header\",\"schema\":99}\n");
  CHECK_THROWS_WITH(read_journal(file), Contains("schema"));
  write_file(file, "");
  CHECK_THROWS_WITH(read_journal(file), Contains("header"));
}

TEST_CASE("a record that is none costs the records of its cell, and is named", "[journal]") {
  TemporaryFolder folder;
  const auto file = folder / "journal.jsonl";
  Json odd = record("a", 1);
  odd["measured"]["timing"]["forward"]["median_seconds"] = -5;
  write_file(file, header.dump() + "\n" + record("a", 0).dump() + "\n" + record("b", 0).dump() +
                       "\n" + odd.dump() + "\n" + record("a", 2).dump() + "\n");
  JournalContents contents = read_journal(file);
  CHECK(contents.rounds.size() == 1);
  CHECK(contents.rounds.at("b").size() == 1);
  CHECK(contents.faults.at("a") == file.string() +
                                       ":4: /measured/timing/forward/median_seconds: expected a "
                                       "positive number of seconds from 1e-12 to 1e9, found -5");
  // Once it is said to be repeated, what comes after counts.
  {
    Journal journal(file);
    journal.append({{"type", "repeat"}, {"cell", "a"}, {"reason", contents.faults.at("a")}});
    journal.append(record("a", 0));
  }
  contents = read_journal(file);
  CHECK(contents.faults.empty());
  CHECK(contents.rounds.at("a").size() == 1);
}

TEST_CASE("a line that names no cell is skipped, and named; one that is there twice counts once",
          "[journal]") {
  TemporaryFolder folder;
  const auto file = folder / "journal.jsonl";
  std::string text = header.dump() + "\n" + record("a", 0).dump() + "\n";
  text += "{\"type\":\"record\",\"round\":1}\n{\"type\":\"repeat\",\"cell\":7}\n";
  for (const int round : {2, 2, 0}) text += record("a", round).dump() + "\n";
  write_file(file, text);
  const JournalContents contents = read_journal(file);
  CHECK(Json(contents.rounds.at("a")) == Json::array({record("a", 0), record("a", 2)}));
  CHECK(contents.skipped ==
        std::vector<std::string>{file.string() + ":3: the record names no cell",
                                 file.string() + ":4: the repeat names no cell"});
}

TEST_CASE("a journal that was deleted or replaced is missed", "[journal]") {
  TemporaryFolder folder;
  const auto file = folder / "journal.jsonl";
  Journal journal(file);
  journal.require_there();
  CHECK_THROWS_AS(Journal(file), attnbench::UsageFailure);  // of another run
  std::filesystem::rename(file, folder / "elsewhere");
  CHECK_THROWS_AS(journal.require_there(), JournalGone);
  write_file(file, "another\n");
  CHECK_THROWS_AS(journal.require_there(), JournalGone);
  std::filesystem::remove(file);
  std::filesystem::rename(folder / "elsewhere", file);
  journal.require_there();
}

TEST_CASE("a write that fails leaves the lines before it whole", "[journal]") {
  TemporaryFolder folder;
  const auto file = folder / "journal.jsonl";
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    Journal journal(file);
    journal.append(header);
    const rlimit small{300, 300};
    setrlimit(RLIMIT_FSIZE, &small);
    int written = 0;
    try {
      for (; written < 100; ++written) journal.append(record("cell", written));
    } catch (const JournalFailure&) {
      _exit(written);
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  const int written = WEXITSTATUS(status);
  CHECK(written > 0);
  const JournalContents contents = read_journal(file);
  CHECK(static_cast<int>(contents.rounds.at("cell").size()) == written);
  CHECK(contents.whole_bytes == std::filesystem::file_size(file));
}
