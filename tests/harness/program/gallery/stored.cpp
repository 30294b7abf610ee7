#include "harness/program/gallery/stored.hpp"

#include "core/failure.hpp"
#include "reports/report.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

namespace {

namespace fs = std::filesystem;

const fs::path reports_folder = test::source_folder() + "/tests/reports";

result::Result fixture() {
  result::Result result = result::read_result(reports_folder / "fixture.json");
  result.cells.resize(40);
  return result;
}

}  // namespace

TEST_CASE("a stored result is small, has no samples, and draws the same figures", "[gallery]") {
  const test::TemporaryFolder folder;
  const fs::path file = gallery::store(fixture(), folder / "gallery", reports_folder);
  CHECK(file == folder / "gallery/fixture.json");
  CHECK(fs::file_size(file) <= gallery::max_stored_bytes);
  const std::string text = test::read_file(file);
  for (const char* gone : {"samples_seconds", "samples_cpu_share", "preempted", "bench-1"}) {
    CHECK_THAT(text, !Contains(gone));
  }
  const result::Result stored = result::read_result(file);
  CHECK(stored.cells.size() == 40);
  CHECK(stored.run.command == "attnbench run suites/fixture.json --profile quick");
  CHECK(fs::equivalent(file.parent_path() / stored.suite.published,
                       reports_folder / "fixture_published.csv"));

  result::Result whole = fixture();
  whole.suite.published = (reports_folder / "fixture_published.csv").string();
  result::write_result(folder / "whole.json", whole);
  const auto names_of = [&](const fs::path& result, const std::string& out) {
    reports::ReportOptions options;
    options.out = folder / out;
    options.render = false;
    const reports::Report report = reports::write_report({result}, options);
    CHECK(report.messages.empty());
    std::vector<std::string> names;
    for (const fs::path& figure : report.figures) names.push_back(figure.filename());
    return names;
  };
  const auto names = names_of(file, "a");
  CHECK(!names.empty());
  CHECK(names == names_of(folder / "whole.json", "b"));
}

TEST_CASE("what is no whole measurement is not stored", "[gallery]") {
  const test::TemporaryFolder folder;
  const auto store = [&](const result::Result& result) {
    return gallery::store(result, folder.path(), reports_folder);
  };
  result::Result interrupted = fixture();
  interrupted.run.state = "interrupted";
  CHECK_THROWS_WITH(store(interrupted), Contains("the run is interrupted"));
  result::Result empty = fixture();
  std::erase_if(empty.cells, [](const auto& cell) { return is_ok(cell); });
  REQUIRE(!empty.cells.empty());
  CHECK_THROWS_WITH(store(empty), Contains("nothing was measured"));
  result::Result large = fixture();
  large.cells.resize(400, large.cells.front());
  CHECK_THROWS_WITH(store(large),
                    Contains("expected at most " + std::to_string(gallery::max_stored_bytes)));
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("the head of a stored result is read without its cells", "[gallery]") {
  const test::TemporaryFolder folder;
  CHECK_FALSE(gallery::look_up(folder.path(), "fixture"));
  gallery::store(fixture(), folder.path(), reports_folder);
  const auto stored = gallery::look_up(folder.path(), "fixture");
  REQUIRE(stored);
  CHECK(stored->fault.empty());
  CHECK(stored->suite_hash == "00ff");
  CHECK(stored->profile == "quick");
  CHECK(stored->commit == "0123abc");
  CHECK(stored->cpu_model == "Example CPU 3.0 GHz");
  CHECK(stored->wall_seconds == Approx(90));
  CHECK(stored->load == Approx(0.1));
  CHECK(stored->threads == 2);
}

TEST_CASE("a stored result of another form is told, with its file", "[gallery]") {
  const test::TemporaryFolder folder;
  const auto fault_of = [&](const std::string& text) {
    test::write_file(folder / "s.json", text);
    const auto stored = gallery::look_up(folder.path(), "s");
    REQUIRE(stored);
    CHECK_THAT(stored->fault, Contains((folder / "s.json").string()));
    return stored->fault;
  };
  CHECK_THAT(fault_of(""), Contains("not JSON, or is cut off"));
  CHECK_THAT(fault_of("{\"attnbench\": {"), Contains("not JSON, or is cut off"));
  CHECK_THAT(fault_of("[]"), Contains("no object \"attnbench\""));
  CHECK_THAT(fault_of("{\"attnbench\": 3}"), Contains("no object \"attnbench\""));
  CHECK_THAT(fault_of("{\"attnbench\": {}}"), Contains("not of the form of a result"));
  CHECK_THAT(fault_of(R"({"attnbench": {"suite": {"name": "t"}}})"), Contains("a result of \"t\""));
  CHECK_THAT(fault_of(R"({"attnbench": {"suite": {"name": "s", "hash": 7}}})"),
             Contains("/attnbench/suite/hash: expected a string"));
  CHECK_THAT(fault_of(std::string(200, '[')), Contains("s.json"));
  fs::remove(folder / "s.json");
  fs::create_directory(folder / "s.json");
  CHECK_THAT(gallery::look_up(folder.path(), "s")->fault, Contains("s.json"));
}
