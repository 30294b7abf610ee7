#include "harness/program/gallery/contribution.hpp"

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "harness/program/gallery/stored.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

/// A result of a suite of the project, as it came from the run.
struct Contributor {
  test::TemporaryFolder folder;
  result::Result whole =
      result::read_result(test::source_folder() + "/tests/reports/fixtures/quickstart.json");

  Contributor() {
    fs::create_directory(folder / "suites");
    test::write_file(folder / "suites/quickstart.json", "{}");
    whole.suite.hash = hash_text("{}");
  }
  result::Result contributed() const { return gallery::contributed(whole, folder / "suites"); }
};

using Change = void (*)(result::Result&);

result::CellRecord& timed_cell(result::Result& result) {
  for (result::CellRecord& cell : result.cells) {
    if (is_ok(cell) && cell.roofline) return cell;
  }
  FAIL("no cell is timed");
  std::abort();
}
result::Timing& a_timing(result::Result& result) {
  result::CellRecord& cell = timed_cell(result);
  return cell.timing.at(cell.primary);
}
/// Another time, consistently in all rounds.
void time_it(result::Result& result, double factor) {
  result::Timing& timing = a_timing(result);
  for (double result::Timing::*const time :
       {&result::Timing::low_seconds, &result::Timing::median_seconds,
        &result::Timing::high_seconds}) {
    timing.*time *= factor;
  }
  for (result::TimingRound& round : timing.rounds) round.median_seconds *= factor;
}

/// The refusal's words and exit code.
std::pair<std::string, ExitCode> refusal_of(const result::Result& contributed) {
  try {
    gallery::expect_contribution(contributed, {"bench-1", "ann", "/data/ann"});
  } catch (const Failure& failure) {
    return {failure.what(), failure.code()};
  }
  return {"accepted", ExitCode::done};
}

}  // namespace

TEST_CASE("every file of reports/machines holds what contributions must", "[contribution]") {
  const fs::path machines = test::source_folder() + "/reports/machines";
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(machines)) {
    INFO(entry.path());
    const result::Result result = result::read_result(entry.path());
    CHECK_NOTHROW(gallery::expect_contribution(result, {}));
    CHECK(entry.path().filename() == gallery::contribution_name(result));
    CHECK(test::read_file(entry.path()) == gallery::stored_text(result));
    ++files;
  }
  CHECK(files > 0);
}

TEST_CASE("a contribution has no names, and says its licence", "[contribution]") {
  Contributor one;
  one.whole.machine.noise_sources = {"ann's program is busy"};
  one.whole.machine.blas.emplace().library = "/home/ann/lib/libblas.so.3";
  const result::Result contributed = one.contributed();
  CHECK(refusal_of(contributed).first == "accepted");
  CHECK(gallery::contribution_name(contributed) == "quickstart-a-cpu-2.json");
  const fs::path file =
      gallery::store_contribution(contributed, one.folder / "new/machines", false);
  const std::string text = test::read_file(file);
  CHECK_THAT(text, Contains("\"license\":\"Apache-2.0\"") && Contains("\"libblas.so.3\"") &&
                       !Contains("ann's") && !Contains("/home") && !Contains("bench-1") &&
                       !Contains("samples_seconds"));
  CHECK(refusal_of(result::read_result(file)).first == "accepted");

  result::Result card = contributed;
  card.machine.devices["cuda"].name = "NVIDIA H200 (141 GB)";
  for (result::CellRecord& cell : card.cells) cell.device = "cuda";
  CHECK(gallery::contribution_name(card) == "quickstart-nvidia-h200-2.json");
}

TEST_CASE("a file of another commit or profile is replaced by force alone", "[contribution]") {
  const Contributor one;
  result::Result contributed = one.contributed();
  const auto store = [&](bool force) {
    return gallery::store_contribution(contributed, one.folder.path(), force);
  };
  const fs::path file = store(false);
  CHECK(store(false) == file);
  contributed.suite.profile = "paper";
  CHECK_THROWS_WITH(store(false), Contains("is there already") && Contains("--force"));
  contributed.provenance.commit = "fedcba98";
  contributed.suite.profile = "quick";
  CHECK_THROWS_WITH(store(false), Contains("is there already, of commit f85f8ffa"));
  CHECK(store(true) == file);
  test::write_file(file, "{}");
  CHECK_THROWS_WITH(store(false), Contains(file.string()));
}

TEST_CASE("what others could not measure is not contributed", "[contribution]") {
  Contributor one;
  one.whole.run.command = "attnbench run quickstart --profile quick --only latte --out x";
  CHECK_THROWS_WITH(one.contributed(), Contains("was measured with --only"));
  one.whole.run.command = "attnbench run quickstart length=512";
  CHECK_THROWS_WITH(one.contributed(), Contains("was measured with length"));
  one.whole.run.command = "attnbench run --resume x";
  one.whole.cells.front().reproduce = "attnbench run quickstart --length=12 --only 0123456789ab";
  CHECK_THROWS_WITH(one.contributed(), Contains("was measured with --length"));
  one.whole.cells.front().reproduce = "attnbench run quickstart --only 0123456789ab";
  CHECK_NOTHROW(one.contributed());
  test::write_file(one.folder / "suites/quickstart.json", "{ }");
  CHECK_THROWS_WITH(one.contributed(), Contains("as it is there now"));
  one.whole.suite.name = "mine";
  CHECK_THROWS_WITH(one.contributed(), Contains("mine: is no suite of"));
  CHECK_THROWS_WITH(gallery::contributed(one.whole, ""), Contains("no suite of the project"));
}

TEST_CASE("a result that cannot be compared, or not be right, is refused", "[contribution]") {
  struct Spoiled {
    const char* words;
    ExitCode code;
    Change change;
  };
  using result::Result;
  const ExitCode usage = ExitCode::usage, failed = ExitCode::failed;
  const std::vector<Spoiled> all = {
      {"the run is interrupted", usage, [](Result& r) { r.run.state = "interrupted"; }},
      {"is one shard", usage,
       [](Result& r) {
         r.run.shard = result::ShardInfo{1, 2};
       }},
      {"several machines", usage, [](Result& r) { r.further["machines"] = Json::array(); }},
      {"knows no commit", usage, [](Result& r) { r.provenance.commit.clear(); }},
      {"number of threads", usage, [](Result& r) { r.run.threads.reset(); }},
      {"wrong cells: 1", failed, [](Result& r) { timed_cell(r).status = Status::wrong; }},
      {"no cell has a time", usage,
       [](Result& r) {
         for (auto& cell : r.cells) cell.timing.clear();
       }},
      {"timed cells are disturbed", ExitCode::undecided,
       [](Result& r) {
         for (auto& cell : r.cells) cell.status = Status::disturbed;
       }},
      {"/attnbench/machine/host: is not as attnbench contribute writes it", usage,
       [](Result& r) { r.machine.host = "pc"; }},
      {"/attnbench/license: is not as", usage, [](Result& r) { r.further.erase("license"); }},
      {"/id: expected 12 hexadecimal digits", failed,
       [](Result& r) { r.cells.back().id = r.cells.front().id; }},
      {"/settings/length: expected that of the problem", failed,
       [](Result& r) { timed_cell(r).settings["length"] = 7; }},
      {"/settings/key_dim: expected that of the problem", failed,
       [](Result& r) { timed_cell(r).settings["key_dim"] = 7; }},
      {"accepted", ExitCode::done,
       [](Result& r) {
         timed_cell(r).settings["key_dim"] = timed_cell(r).problem.at("head_dim");
         timed_cell(r).settings["head_dim"] = 7;
       }},
      {"no ceilings", failed, [](Result& r) { r.ceilings.clear(); }},
      {"a positive number of seconds", failed, [](Result& r) { time_it(r, 0); }},
      {"/rounds: expected at least one", failed, [](Result& r) { a_timing(r).rounds.clear(); }},
      {"between the medians of the rounds", failed,
       [](Result& r) { a_timing(r).median_seconds *= 10; }},
      {"where its work takes at least", failed, [](Result& r) { time_it(r, 1e-3); }},
      {"/attnbench/suite/title: holds \"ann\"", usage, [](Result& r) { r.suite.title = "by ann"; }},
      {"holds \"bench-1\"", usage, [](Result& r) { r.suite.notes = "on bench-1.lan"; }},
      {"holds \"/data/ann\"", usage, [](Result& r) { r.suite.notes = "/data/ann/x.py"; }},
      {"holds \"/home\"", usage, [](Result& r) { r.suite.notes = "-I/home/x"; }},
      {"holds \"/home\"", usage, [](Result& r) { r.suite.notes = "see /export/home/x"; }},
      {"holds \"Ann\"", usage, [](Result& r) { r.suite.notes = "by Ann"; }},
      {"is not as attnbench contribute writes it", usage,
       [](Result& r) { r.cells[0].reason = "see /data/x/y.py"; }},
      {"several builds", usage, [](Result& r) { r.run.forced = {"two binaries"}; }},
      {"low, median and high", failed, [](Result& r) { a_timing(r).low_seconds = 1e3; }},
      {"holds \"/Users\"", usage, [](Result& r) { r.suite.tasks["/Users/x"].task = "kernel"; }},
      {"accepted", ExitCode::done, [](Result& r) { r.suite.title = "annual, bench-12"; }},
      {"accepted", ExitCode::done, [](Result& r) { r.provenance.dirty = true; }},
  };
  const Contributor one;
  for (const Spoiled& spoiled : all) {
    INFO(spoiled.words);
    result::Result result = one.contributed();
    spoiled.change(result);
    const auto [words, code] = refusal_of(result);
    CHECK_THAT(words, Contains(spoiled.words));
    CHECK(code == spoiled.code);
  }
}

TEST_CASE("what was measured here is plausible", "[contribution]") {
  for (const auto& entry : fs::directory_iterator(test::source_folder() + "/reports/gallery")) {
    if (entry.path().extension() != ".json") continue;
    INFO(entry.path());
    result::Result result = result::read_result(entry.path());
    Contributor one;
    test::write_file(one.folder / ("suites/" + result.suite.name + ".json"), "{}");
    result.suite.hash = hash_text("{}");
    if (result.provenance.commit.empty()) result.provenance.commit = "unknown";
    one.whole = result;
    const auto [words, code] = refusal_of(one.contributed());
    if (!words.ends_with("no cell has a time")) CHECK(words == "accepted");
  }
}
