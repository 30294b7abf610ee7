#include "reports/trend/history.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using reports::trend::HistoryLine;
namespace trend = reports::trend;

namespace {

HistoryLine history_line(const std::string& id, const std::string& date) {
  HistoryLine line;
  line.commit = "abc";
  line.date = date;
  line.machine = "m1";
  line.id = id;
  line.what = "forward";
  line.label = "latte";
  line.median_seconds = 0.5;
  line.rounds = 5;
  return line;
}

const std::string line_text =
    nlohmann::json(history_line("a", "2026-01-01T00:00:00Z")).dump() + "\n";

std::string refusal_of(const std::filesystem::path& file, const std::vector<HistoryLine>& lines) {
  try {
    trend::append_history(file, lines);
  } catch (const UsageFailure& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a result's cells that are ok become lines, machines told apart", "[trend]") {
  const auto result = test::fixture_result();
  const auto lines = trend::lines_of(result);
  REQUIRE_FALSE(lines.empty());
  for (const HistoryLine& line : lines) {
    CHECK(line.median_seconds > 0);
    CHECK(line.machine == lines.front().machine);
    CHECK_FALSE(line.name.empty());
  }
  for (const auto& cell : result.cells) {
    const bool any = std::any_of(lines.begin(), lines.end(),
                                 [&](const HistoryLine& line) { return line.id == cell.id; });
    CHECK(any == (result::is_ok(cell) && !cell.timing.empty()));
  }
  auto elsewhere = result;
  elsewhere.machine.host += "2";
  CHECK(trend::lines_of(elsewhere).front().machine != lines.front().machine);
}

TEST_CASE("the calibrated median is in units of each round's probe", "[trend]") {
  const auto lines = trend::lines_of(
      test::result_of({test::CellBuilder("x").rounds({2, 6, 40, 99}, {1, 2, 10, 1}).disturb({3})}));
  REQUIRE(lines.size() == 1);
  CHECK(*lines[0].calibrated_median == Approx(3));
  CHECK(lines[0].rounds == 3);
}

TEST_CASE("a history refuses a line twice and stays as it was", "[trend]") {
  const test::TemporaryFolder folder;
  const auto file = folder / "history.jsonl";
  const auto first = history_line("a", "2026-01-01T00:00:00Z");
  const auto second = history_line("b", "2026-01-01T00:00:00Z");
  trend::append_history(file, {first});
  CHECK(test::read_file(file) == line_text);
  CHECK_THAT(refusal_of(file, {second, first}), Catch::Contains("line 1 has it already"));
  CHECK_THAT(refusal_of(file, {second, second}), Catch::Contains("comes twice"));
  CHECK(test::read_file(file) == line_text);
  trend::append_history(file, {second});
  CHECK(trend::read_history(file).lines.size() == 2);
  CHECK_THROWS_AS(trend::append_history(folder / "history.jsonl/x", {second}), EnvironmentFailure);
}

TEST_CASE("bad lines are named by file and number and left out", "[trend]") {
  const test::TemporaryFolder folder;
  const auto file = folder / "history.jsonl";
  const auto other = [](const char* key, const nlohmann::json& value) {
    auto json = nlohmann::json::parse(line_text);
    json[key] = value;
    return json.dump() + "\n";
  };
  test::write_file(file, line_text + "not json\n" + other("version", 2) +
                             other("median_seconds", -1) + other("median_seconds", "x") +
                             line_text + "[1]\n" + other("date", "2026-01-02T00:00:00Z") +
                             "{\"version\": 1, \"da");
  const auto history = trend::read_history(file);
  CHECK(history.lines.size() == 2);
  REQUIRE(history.faults.size() == 7);
  for (std::size_t i = 0; i < history.faults.size(); ++i) {
    const std::size_t number = i < 6 ? i + 2 : 9;
    CHECK_THAT(history.faults[i], Catch::Contains("history.jsonl:" + std::to_string(number) + ":"));
  }
  CHECK_THAT(history.faults[1], Catch::Contains("/version"));
  CHECK_THAT(history.faults[4], Catch::Contains("line 1"));
  // What was cut off stays a line of its own.
  trend::append_history(file, {history_line("c", "2026-01-03T00:00:00Z")});
  CHECK(trend::read_history(file).lines.size() == 3);
  CHECK(trend::read_history(file).faults.size() == 7);
}

TEST_CASE("what is no history at all is refused", "[trend]") {
  const test::TemporaryFolder folder;
  CHECK(trend::read_history(folder / "none").lines.empty());
  test::write_file(folder / "page.html", "<html>\n</html>\n");
  CHECK_THROWS_AS(trend::read_history(folder / "page.html"), UsageFailure);
  CHECK_THROWS_AS(trend::read_history(folder.path()), UsageFailure);
}
