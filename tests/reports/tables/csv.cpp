#include "reports/tables/csv.hpp"

#include <algorithm>
#include <sstream>

#include "core/result/document.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;

namespace {

nlohmann::json stored_result(const std::string& name) {
  return result::read_result(test::source_folder() + "/tests/reports/fixtures/" + name + ".json");
}

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
  const nlohmann::json result = stored_result("mqar_smoke");
  const auto rows = parsed(reports::csv_table(result));
  const nlohmann::json& cells = result["attnbench"]["cells"];
  REQUIRE(rows.size() == cells.size() + 1);
  for (std::size_t i = 0; i < cells.size(); ++i) {
    REQUIRE(rows[i + 1].size() == rows[0].size());
    for (const char* part : {"metrics", "settings"}) {
      for (const auto& [key, value] : cells[i][part].items()) {
        if (value.is_structured()) continue;
        const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
        CHECK(rows[i + 1][place_of(rows[0], key)] == text);
      }
    }
    CHECK(rows[i + 1][place_of(rows[0], "training_steps")] == cells[i]["training"]["steps"].dump());
  }
}

TEST_CASE("docs/results.md says what each fixed column of the tidy table means", "[csv]") {
  const std::string page = test::read_file(test::source_folder() + "/docs/results.md");
  const auto described = [&](const std::string& name) {
    return page.find("`" + name + "`") != std::string::npos;
  };
  for (const std::string& column : reports::fixed_csv_columns()) {
    INFO(column);
    CHECK(described(column));
  }
  const nlohmann::json trained = stored_result("mqar_smoke");
  for (const auto& [key, value] : trained["attnbench"]["cells"][0]["metrics"].items()) {
    INFO(key);
    CHECK(described(key));
  }
  const auto samples = parsed(reports::csv_samples(stored_result("decode")));
  for (const std::string& column : samples.at(0)) {
    INFO(column);
    CHECK(described(column));
  }
}

TEST_CASE("primary lines are one for each timed cell", "[csv]") {
  const nlohmann::json result = stored_result("decode");
  const auto rows = parsed(reports::csv_table(result));
  const std::size_t primary = place_of(rows[0], "primary");
  CHECK(std::count_if(rows.begin(), rows.end(), [&](const auto& row) {
          return row[primary] == "true";
        }) == static_cast<std::ptrdiff_t>(result["attnbench"]["cells"].size()));
}

TEST_CASE("the samples have a line each, with what was preempted marked", "[csv]") {
  nlohmann::json result = stored_result("quickstart");
  nlohmann::json& round = result["attnbench"]["cells"][0]["timing"]["forward"]["rounds"][0];
  round["preempted"] = {1};
  std::size_t samples = 0;
  for (const auto& cell : result["attnbench"]["cells"]) {
    for (const auto& [what, timing] : cell["timing"].items()) {
      for (const auto& one : timing["rounds"]) samples += one["samples_seconds"].size();
    }
  }
  const auto rows = parsed(reports::csv_samples(result));
  REQUIRE(rows.size() == samples + 1);
  const std::size_t preempted = place_of(rows[0], "preempted");
  CHECK(rows[1][preempted] == "false");
  CHECK(rows[2][preempted] == "true");
  CHECK(rows[2][place_of(rows[0], "seconds")] == round["samples_seconds"][1].dump());
}
