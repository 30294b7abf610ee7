#include "harness/program/run/folder/resume.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench::run;

namespace {

Identity usual() {
  Identity identity;
  identity.binary = "b1";
  identity.machine = "host, cpu";
  identity.threads = 2;
  identity.measure = {{"relative_interval", 0.01}};
  return identity;
}

JournalContents journal_of(const std::string& last_status) {
  JournalContents journal;
  for (const char* id : {"a", "b"}) {
    journal.identities[id] = usual();
    journal.rounds[id].resize(2);
    journal.rounds[id][0].status = attnbench::Status::ok;
    journal.rounds[id][1].round = 1;
    journal.rounds[id][1].status = *attnbench::status_from(last_status);
  }
  return journal;
}

}  // namespace

TEST_CASE("records hold under the identity they were made under", "[resume]") {
  const Resumed resumed = resumed_records(journal_of("ok"), {"a", "c"}, usual(), {});
  CHECK(resumed.records.size() == 1);
  CHECK(resumed.records.at("a").size() == 2);
  CHECK(resumed.repeated.empty());
}

TEST_CASE("each part of the identity can end them, and is named", "[resume]") {
  std::vector<Identity> others(5, usual());
  others[0].binary = "b2";
  others[1].machine = "another";
  others[2].threads = 1;
  others[3].seed = 7;
  others[4].measure["relative_interval"] = 0.05;
  std::set<std::string> reasons;
  for (const Identity& other : others) {
    const Resumed resumed = resumed_records(journal_of("ok"), {"a", "b"}, other, {});
    CHECK(resumed.records.empty());
    reasons.insert(resumed.repeated.at("a"));
  }
  CHECK(reasons.size() == 5);
}

TEST_CASE("records hold on the device that they were measured on alone", "[resume]") {
  const auto on = [](const char* card) {
    Identity identity = usual();
    identity.devices["cuda"] = {{"name", card}, {"driver_cuda", "13.0"}};
    return identity;
  };
  JournalContents journal = journal_of("ok");
  for (auto& [id, identity] : journal.identities) identity = on("one");
  CHECK(resumed_records(journal, {"a"}, on("one"), {}).records.size() == 1);
  const Resumed resumed = resumed_records(journal, {"a"}, on("other"), {});
  CHECK(resumed.records.empty());
  CHECK_THAT(resumed.repeated.at("a"), Catch::Contains("another device"));
  // What ran on the CPU alone says nothing of a device that comes later.
  CHECK(resumed_records(journal_of("ok"), {"a"}, on("one"), {}).records.size() == 1);
  CHECK(resumed_records(journal, {"a"}, usual(), {}).records.size() == 1);
}

TEST_CASE("cells of a status, or exactly the disturbed ones, are repeated on demand", "[resume]") {
  CHECK(resumed_records(journal_of("timeout"), {"a"}, usual(), {"crashed"}).records.size() == 1);
  CHECK(resumed_records(journal_of("timeout"), {"a"}, usual(), {"crashed", "timeout"})
            .repeated.at("a") == "--retry timeout");
  JournalContents journal = journal_of("ok");
  const auto set_rounds = [&](const char* id, const std::vector<bool>& disturbed) {
    auto& rounds = journal.rounds[id];
    rounds.resize(disturbed.size());
    for (std::size_t i = 0; i < disturbed.size(); ++i) {
      rounds[i].round = static_cast<int>(i);
      rounds[i].status = attnbench::Status::ok;
      rounds[i].measured.timing["forward"].median_seconds = 0.01;
      rounds[i].measured.timing["forward"].disturbed = disturbed[i];
    }
  };
  set_rounds("a", {true, true, false});
  set_rounds("b", {false, true, false});
  const Resumed resumed = resumed_records(journal, {"a", "b"}, usual(), {"disturbed"});
  CHECK(resumed.repeated == std::map<std::string, std::string>{{"a", "--retry disturbed"}});
  CHECK(resumed.records.count("b") == 1);
  CHECK(resumed_records(journal, {"a", "b"}, usual(), {"crashed"}).repeated.empty());
}

TEST_CASE("a cell whose journal is damaged is repeated, with the line that says so", "[resume]") {
  JournalContents journal = journal_of("ok");
  journal.rounds.erase("a");
  journal.faults["a"] = "journal.jsonl:7: round: expected a whole number";
  const Resumed resumed = resumed_records(journal, {"a", "b"}, usual(), {});
  CHECK(resumed.records.size() == 1);
  CHECK(resumed.repeated.at("a") == journal.faults.at("a"));
}
