#include "reports/figures/published.hpp"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/failure.hpp"
#include "core/result/document.hpp"
#include "reports/figures/figure.hpp"
#include "tests/reports/figures/spec_parts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

const std::string folder = test::source_folder() + "/tests/reports/";

}  // namespace

TEST_CASE("published numbers are read with their quotes and units", "[reports]") {
  const test::TemporaryFolder temporary;
  test::write_file(temporary / "x.csv",
                   "# from the paper\nlabel,length,milliseconds,mebibytes\r\n"
                   "\"latte, \"\"scan\"\"\",1024,2.5,\r\nsoftmax,2048,,3\n");
  const auto rows = reports::read_published(temporary / "x.csv");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].label == "latte, \"scan\"");
  CHECK(*rows[0].seconds == Approx(0.0025));
  CHECK_FALSE(rows[0].bytes);
  CHECK(*rows[1].bytes == Approx(3 * 1024 * 1024));
  CHECK(rows[1].settings.at("length") == "2048");
}

TEST_CASE("malformed published numbers are refused by line", "[reports]") {
  const test::TemporaryFolder temporary;
  const auto message = [&](const std::string& text) -> std::string {
    test::write_file(temporary / "x.csv", text);
    try {
      reports::read_published(temporary / "x.csv");
    } catch (const UsageFailure& failure) {
      return failure.what();
    }
    return "";
  };
  CHECK_THAT(message("name,seconds\n"), Catch::Contains("x.csv:1: ") && Catch::Contains("label"));
  CHECK_THAT(message("label,seconds\nsoftmax\n"), Catch::Contains("x.csv:2: expected 2 fields"));
  CHECK_THAT(message("label,seconds\nsoftmax,fast\n"), Catch::Contains("must be a number"));
}

TEST_CASE("published numbers stand only beside the cells they belong to", "[reports]") {
  const Json result = result::read_result(folder + "fixture.json");
  const auto panels = test::panels(result);
  const auto rows = reports::read_published(folder + "fixture_published.csv");
  CHECK(reports::published_times(rows, panels[0]).size() == 8);
  CHECK(reports::published_times(rows, panels[1]).empty());  // another pass
  CHECK(reports::published_times(rows, panels[2]).empty());  // another task
  CHECK(reports::published_bytes(rows, panels[0]).empty());
}

TEST_CASE("published ratios are drawn in the figure of speedups alone", "[reports]") {
  const test::TemporaryFolder temporary;
  test::write_file(temporary / "x.csv",
                   "label,length,speedup,megabytes\nflash,1024,3.5,2\nabc,1024,9,\n");
  const auto rows = reports::read_published(temporary / "x.csv");
  CHECK(*rows[0].speedup == 3.5);
  CHECK(*rows[0].bytes == 2e6);
  const Json result = result::read_result(folder + "fixture.json");
  const auto panels = test::panels(result);
  const auto ratios = reports::published_speedups(rows, panels[0]);
  REQUIRE(ratios.size() == 1);  // abc is no label of the result
  CHECK(ratios[0].y == 3.5);
  const auto figure = reports::draw("speedup", panels[0], panels[0].series, rows).at(0);
  CHECK_THAT(figure.caption, Catch::Contains("published"));
  CHECK_THAT(figure.spec["title"]["subtitle"].dump(), Catch::Contains("Hollow and dashed"));
  const auto times = reports::draw("time", panels[0], panels[0].series, rows).at(0);
  CHECK(times.caption.find("published") == std::string::npos);
}

TEST_CASE("the published numbers beside the suites are read, and belong to labels of theirs",
          "[reports]") {
  const std::filesystem::path suites = test::source_folder() + "/suites";
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(suites)) {
    if (entry.path().extension() != ".csv") continue;
    ++files;
    INFO(entry.path());
    const Json suite =
        Json::parse(test::read_file((suites / entry.path().stem()).string() + ".json"));
    CHECK(suite["published"] == entry.path().filename().string());
    CHECK(test::read_file(entry.path()).front() == '#');  // it says where they are from
    const auto rows = reports::read_published(entry.path());
    CHECK_FALSE(rows.empty());
    for (const auto& row : rows) {
      INFO(row.label);
      // Models that we do not have stand under their source's name, and so does what was trained
      // alone.
      const bool of_training = row.accuracy || row.bits_per_byte || row.perplexity;
      const bool of_cost = row.seconds || row.bytes || row.speedup;
      CHECK((!row.source.empty() || (of_cost && suite["mechanisms"].contains(row.label))));
      CHECK((of_cost || of_training));
      if (row.accuracy) CHECK((*row.accuracy >= 0 && *row.accuracy <= 1));
    }
  }
  CHECK(files >= 4);
}

TEST_CASE("published numbers are drawn hollow and dashed", "[reports]") {
  const Json result = result::read_result(folder + "fixture.json");
  const auto rows = reports::read_published(folder + "fixture_published.csv");
  const auto figure =
      reports::draw("time", test::panels(result)[0], {"softmax", "latte, scan"}, rows).at(0);
  std::size_t layers = 0;
  for (const Json& layer : test::layers_of(figure.spec)) {
    const Json& mark = layer["mark"];
    const bool of_a_part =
        layer.value("transform", Json()).dump().find("datum.part ==") != std::string::npos;
    const bool hollow_or_dashed = mark.contains("strokeDash") || !mark.value("filled", true);
    layers += of_a_part && hollow_or_dashed;
  }
  std::size_t numbers = 0;
  for (const Json& row : figure.spec["data"]["values"]) {
    numbers += row.contains("part") && !row.contains("status");  // those with one are failures
  }
  CHECK(numbers == 8);
  CHECK(layers == 2);
  CHECK(test::unit_of(figure.spec)["encoding"]["x"]["scale"]["domain"] == Json({256, 16384}));
}

TEST_CASE("published accuracies of Long Range Arena are there for every label and task of a suite",
          "[reports][lra]") {
  const std::string suites = test::source_folder() + "/suites/";
  for (const char* name : {"latte_v1_table_2", "latte_v2_table_3", "lavo_table_11"}) {
    const Json suite = Json::parse(test::read_file(suites + name + ".json"));
    const auto rows = reports::read_published(suites + suite.at("published").get<std::string>());
    std::map<std::string, std::set<std::string>> tasks_of;
    for (const auto& row : rows) {
      INFO(name << " " << row.label);
      REQUIRE(row.accuracy);
      CHECK(*row.accuracy > 0.1);  // ten classes
      CHECK(*row.accuracy < 1);
      CHECK_FALSE(row.source.empty());
      const std::string task = row.settings.at("task");
      CHECK(suite.at("tasks").contains(task));
      CHECK(tasks_of[row.label].insert(task).second);  // none twice
    }
    for (const auto& [label, entry] : suite.at("mechanisms").items()) {
      if (label.rfind("ours: ", 0) == 0) continue;
      INFO(name << " " << label);
      CHECK(tasks_of[label].size() == suite.at("tasks").size());
    }
  }
  const auto speedups = reports::read_published(suites + "lra_efficiency.csv");
  REQUIRE_FALSE(speedups.empty());
  for (const auto& row : speedups) CHECK(row.speedup.value_or(0) > 0);
}
