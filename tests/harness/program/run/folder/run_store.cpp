#include "harness/program/run/folder/run_store.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench::run;
using attnbench::test::read_file;
using attnbench::test::TemporaryFolder;
using attnbench::test::write_file;

namespace {

const Json identity = {{"binary", "b1"}, {"machine", "host"}};
const Json store_header = {{"type", "header"},          {"schema", journal_schema},
                           {"suite", Json::object()},   {"cells", Json::array()},
                           {"measure", Json::object()}, {"identity", identity}};

Json stored_record(const std::string& cell, int round, const char* status = "timeout") {
  return {{"type", "record"},
          {"cell", cell},
          {"round", round},
          {"status", status},
          {"measured", Json::object()}};
}

std::vector<Planned> stored_plan(const std::vector<std::string>& ids) {
  std::vector<Planned> cells;
  for (const std::string& id : ids) {
    Planned one;
    one.cell.id = one.cell.label = id;
    one.cell.task = one.cell.task_label = "kernel";
    one.cell.mechanism = "softmax";
    cells.push_back(one);
  }
  return cells;
}

/// The folder of a run of cells a and b, of which the first ended well.
RunFolder earlier_run(const TemporaryFolder& folder) {
  const RunFolder run = make_run_folder("x", folder / "earlier");
  RunStore store(run);
  store.begin(store_header);
  store.add_probe({"cpu", {{"fma", 1}}, {}});
  store.add(stored_record("a", 0, "ok").get<attnbench::result::RoundRecord>());
  store.add(stored_record("b", 0).get<attnbench::result::RoundRecord>());
  return run;
}

}  // namespace

TEST_CASE("a store gives back what was added, and so does the next start", "[run_store]") {
  const TemporaryFolder folder;
  const RunFolder run = earlier_run(folder);
  // A line that names no cell is told, and costs nothing else.
  write_file(run.journal(), read_file(run.journal()) + "{\"type\":\"record\"}\n");
  RunStore store(run);
  const Resumed resumed =
      store.resume(store_header, stored_plan({"a", "b", "c"}), {identity.get<Identity>(), {}});
  CHECK(resumed.records.size() == 2);
  CHECK(resumed.repeated.empty());
  REQUIRE(resumed.skipped.size() == 1);
  CHECK_THAT(resumed.skipped.front(), Catch::Contains(":5: the record names no cell"));
  CHECK(Json(store.records().at("b")) == Json::array({stored_record("b", 0)}));
  CHECK(store.has_probe("cpu"));
  CHECK_FALSE(store.has_probe("cuda"));
  store.add_no_probe("cuda");
  CHECK(store.has_probe("cuda"));
  CHECK(store.resume_command("run") == "attnbench run --resume " + run.path.string());
}

TEST_CASE("records that no longer hold are repeated, and the journal says so", "[run_store]") {
  const TemporaryFolder folder;
  const RunFolder run = earlier_run(folder);
  Json other = identity;
  other["binary"] = "b2";
  Json second = store_header;
  second["identity"] = other;
  {
    RunStore store(run);
    const Resumed resumed =
        store.resume(second, stored_plan({"a", "b"}), {other.get<Identity>(), {}});
    CHECK(resumed.records.empty());
    CHECK(resumed.repeated.size() == 2);
    CHECK_FALSE(store.has_probe("cpu"));
  }
  CHECK(read_journal(run.journal()).rounds.empty());
  CHECK_THAT(read_file(run.journal()), Catch::Contains("\"type\":\"repeat\""));
}

TEST_CASE("records of another run are copied where there are none", "[run_store]") {
  const TemporaryFolder folder;
  const RunFolder other = earlier_run(folder);
  RunStore store(make_run_folder("x", folder / "new"));
  store.begin(store_header);
  store.add(stored_record("b", 1).get<attnbench::result::RoundRecord>());
  const Resumed copied =
      store.copy_from(other, stored_plan({"a", "b"}), {identity.get<Identity>(), {}});
  CHECK(copied.records.size() == 1);
  CHECK(store.records().at("a").front().reused_from == other.path.string());
  CHECK(Json(store.records().at("b")) == Json::array({stored_record("b", 1)}));
  CHECK(read_journal(store.folder().journal()).rounds.at("a").size() == 1);
}

TEST_CASE(
    "a cell that ended well leaves neither checkpoints nor an empty log, unless they are kept",
    "[run_store]") {
  const TemporaryFolder folder;
  for (const bool keep : {false, true}) {
    RunStore store(make_run_folder("x", folder / (keep ? "kept" : "gone")), keep);
    store.begin(store_header);
    for (const char* cell : {"a", "b"}) {
      std::filesystem::create_directories(store.folder().checkpoints(cell));
      write_file(store.folder().cell_log(cell), cell[0] == 'b' ? "a word" : "");
      store.drop_empty_log(cell);
    }
    store.add(stored_record("a", 0, "ok").get<attnbench::result::RoundRecord>());
    store.add(stored_record("b", 0).get<attnbench::result::RoundRecord>());
    CHECK(std::filesystem::exists(store.folder().checkpoints("a")) == keep);
    CHECK(std::filesystem::exists(store.folder().checkpoints("b")));
    CHECK_FALSE(std::filesystem::exists(store.folder().cell_log("a")));
    CHECK(std::filesystem::exists(store.folder().cell_log("b")));
  }
}
