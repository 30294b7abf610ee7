#include "reports/tables/csv.hpp"

#include <algorithm>
#include <sstream>

#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;

namespace {

/// Lines of fields; a field may be quoted.
std::vector<std::vector<std::string>> parsed(const std::string& csv) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string> fields{""};
    bool quoted = false;
    for (const char letter : line) {
      if (letter == '"') quoted = !quoted;
      if (letter == ',' && !quoted) {
        fields.emplace_back();
      } else {
        fields.back() += letter;
      }
    }
    rows.push_back(fields);
  }
  return rows;
}

std::size_t place_of(const std::vector<std::string>& header, const std::string& name) {
  const auto found = std::find(header.begin(), header.end(), name);
  INFO(name);
  REQUIRE(found != header.end());
  CHECK(std::count(header.begin(), header.end(), name) == 1);
  return static_cast<std::size_t>(found - header.begin());
}

}  // namespace

TEST_CASE("the tidy table has every metric and setting of trainings", "[csv]") {
  const result::Result result = test::fixture_result("fixtures/mqar_smoke");
  const auto rows = parsed(reports::csv_table(result));
  REQUIRE(rows.size() == result.cells.size() + 1);
  for (std::size_t i = 0; i < result.cells.size(); ++i) {
    const result::CellRecord& cell = result.cells[i];
    REQUIRE(rows[i + 1].size() == rows[0].size());
    for (const Values* part : {&cell.metrics, &cell.settings}) {
      for (const auto& [key, value] : *part) {
        if (value.is_structured()) continue;
        const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
        CHECK(rows[i + 1][place_of(rows[0], key)] == text);
      }
    }
    CHECK(rows[i + 1][place_of(rows[0], "training_steps")] ==
          std::to_string(*cell.training->steps));
  }
}

TEST_CASE("docs/results.md says what each fixed column of the tidy table means", "[csv]") {
  const std::string page = test::read_file(test::source_folder() + "/docs/results.md");
  std::vector<std::string> names = reports::fixed_csv_columns();
  const result::Result trained = test::fixture_result("fixtures/mqar_smoke");
  for (const auto& [key, value] : trained.cells[0].metrics) names.push_back(key);
  const auto samples = parsed(reports::csv_samples(test::fixture_result("fixtures/decode"))).at(0);
  names.insert(names.end(), samples.begin(), samples.end());
  for (const std::string& name : names) CHECK_THAT(page, Catch::Contains("`" + name + "`"));
}

TEST_CASE("the tidy table has a line per timing, one of them primary, and one per cell without",
          "[csv]") {
  const result::Result result = test::fixture_result();
  std::size_t expected = 1;
  std::ptrdiff_t timed = 0;
  for (const result::CellRecord& cell : result.cells) {
    expected += std::max<std::size_t>(1, cell.timing.size());
    timed += !cell.timing.empty();
  }
  const auto rows = parsed(reports::csv_table(result));
  CHECK(rows.size() == expected);
  const std::size_t primary = place_of(rows[0], "primary");
  for (const auto& row : rows) REQUIRE(row.size() == rows[0].size());
  CHECK(std::count_if(rows.begin(), rows.end(),
                      [&](const auto& row) { return row[primary] == "true"; }) == timed);
}

TEST_CASE("the samples have a line each, with what was preempted marked", "[csv]") {
  result::Result result = test::fixture_result("fixtures/quickstart");
  result::TimingRound& round = result.cells[0].timing["forward"].rounds[0];
  round.preempted = std::vector<std::size_t>{1};
  std::size_t samples = 0;
  for (const auto& cell : result.cells) {
    for (const auto& [what, timing] : cell.timing) {
      for (const auto& one : timing.rounds) samples += one.samples_seconds.size();
    }
  }
  const auto rows = parsed(reports::csv_samples(result));
  REQUIRE(rows.size() == samples + 1);
  const std::size_t preempted = place_of(rows[0], "preempted");
  CHECK(rows[1][preempted] == "false");
  CHECK(rows[2][preempted] == "true");
  CHECK(std::stod(rows[2][place_of(rows[0], "seconds")]) == round.samples_seconds[1]);
}
