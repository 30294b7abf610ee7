#include "harness/program/run/folder/samples.hpp"

#include "core/failure.hpp"
#include "harness/program/run/folder/journal.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using namespace attnbench::run;

namespace {

/// A run's folder, whose result leaves its samples to the journal.
struct FinishedRun {
  FinishedRun() {
    for (result::CellRecord& cell : whole.cells) {
      for (auto& [what, timing] : cell.timing) {
        for (result::TimingRound& round : timing.rounds) give_samples(round);
      }
    }
    Journal journal(folder / "journal.jsonl");
    journal.append({{"type", "header"},
                    {"schema", journal_schema},
                    {"suite", nlohmann::json::object()},
                    {"cells", nlohmann::json::array()},
                    {"measure", nlohmann::json::object()},
                    {"identity", nlohmann::json::object()}});
    for (const result::CellRecord& cell : whole.cells) {
      std::map<int, result::RoundRecord> rounds;
      for (const auto& [what, timing] : cell.timing) {
        for (const result::TimingRound& round : timing.rounds) {
          result::RoundRecord& record = rounds[static_cast<int>(round.round.value_or(0))];
          record.cell = cell.id;
          record.round = static_cast<int>(round.round.value_or(0));
          record.status = Status::ok;
          record.measured.timing[what] = round;
        }
      }
      for (const auto& [index, record] : rounds) journal.append(record);
    }
    write(without_samples(whole, folder / "journal.jsonl"));
  }
  void write(const result::Result& result) const {
    result::write_result(folder / "result.json", result);
  }

  /// Three, of which the last was preempted; those of the fixture were cut, so that its medians are
  /// not theirs.
  static void give_samples(result::TimingRound& round) {
    round.samples_seconds = {round.median_seconds, round.median_seconds, 2 * round.median_seconds};
    round.samples_cpu_share = std::vector<double>{1, 1, 0.5};
    round.samples_switches = std::vector<std::int64_t>{0, 0, 3};
    round.preempted = std::vector<std::size_t>{2};
  }

  result::Result whole = test::fixture_result("fixtures/quickstart");
  test::TemporaryFolder folder;
};

}  // namespace

TEST_CASE("a run's result has no samples, and gets them back from its journal", "[samples]") {
  const FinishedRun run;
  const std::string written = test::read_file(run.folder / "result.json");
  CHECK_THAT(written, !Catch::Contains("samples_seconds") &&
                          Catch::Contains("\"samples\": \"journal.jsonl\""));
  for (const std::filesystem::path& path : {run.folder.path(), run.folder / "result.json"}) {
    const result::Result again = with_samples(path);
    CHECK(again.run.samples.empty());
    REQUIRE(again.cells.size() == run.whole.cells.size());
    for (std::size_t i = 0; i < again.cells.size(); ++i) {
      CHECK(nlohmann::json::diff(again.cells[i], run.whole.cells[i]) == nlohmann::json::array());
    }
  }
}

TEST_CASE("a result that is made of a run's keeps its samples where they are there", "[samples]") {
  const FinishedRun run;
  CHECK_FALSE(with_samples_there(run.folder.path())
                  .cells[0]
                  .timing.begin()
                  ->second.rounds[0]
                  .samples_seconds.empty());
  std::filesystem::remove(run.folder / "journal.jsonl");
  const result::Result without = with_samples_there(run.folder.path());
  CHECK(without.run.samples.empty());
  CHECK(without.cells.size() == run.whole.cells.size());
}

TEST_CASE("a result whose samples are elsewhere says where", "[samples]") {
  const FinishedRun run;
  const std::string journal = run.folder / "journal.jsonl";
  const std::string lines = test::read_file(journal);
  test::write_file(journal, lines.substr(0, lines.find('\n') + 1));
  CHECK_THROWS_WITH(with_samples(run.folder.path()), Catch::Contains("none of the samples"));
  std::filesystem::remove(journal);
  CHECK_THROWS_WITH(with_samples(run.folder.path()),
                    Catch::Contains("journal.jsonl") && Catch::Contains("the folder of the run"));
  result::Result merged = without_samples(run.whole, "journal.jsonl");
  merged.run.samples.clear();
  merged.run.merged.emplace();
  run.write(merged);
  CHECK_THROWS_WITH(with_samples(run.folder.path()), Catch::Contains("one of the merged runs"));
}
