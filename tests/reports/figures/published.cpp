#include "reports/figures/published.hpp"

#include <map>
#include <set>

#include "core/failure.hpp"
#include "reports/draw.hpp"
#include "tests/reports/figures/spec_parts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

std::vector<reports::PublishedRow> published_rows(const std::string& text) {
  const test::TemporaryFolder temporary;
  test::write_file(temporary / "x.csv", text);
  return reports::read_published(temporary / "x.csv");
}

}  // namespace

TEST_CASE("published numbers are read with their quotes and units", "[reports]") {
  const auto rows = published_rows(
      "# from the paper\nlabel,length,milliseconds,mebibytes\r\n"
      "\"latte, \"\"scan\"\"\",1024,2.5,\r\nsoftmax,2048,,3\n");
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].label == "latte, \"scan\"");
  CHECK(*rows[0].seconds == Approx(0.0025));
  CHECK_FALSE(rows[0].bytes);
  CHECK(*rows[1].bytes == Approx(3 * 1024 * 1024));
  CHECK(rows[1].settings.at("length") == "2048");
}

TEST_CASE("malformed published numbers are refused by line", "[reports]") {
  for (const auto& [text, complaint] : std::map<std::string, std::string>{
           {"name,seconds\n", "x.csv:1: "},
           {"label,seconds\nsoftmax\n", "x.csv:2: expected 2 fields"},
           {"label,seconds\nsoftmax,fast\n", "must be a number"}}) {
    CHECK_THROWS_AS(published_rows(text), UsageFailure);
    CHECK_THROWS_WITH(published_rows(text), Catch::Contains(complaint));
  }
}

TEST_CASE("published numbers are hollow and dashed, beside the cells they belong to", "[reports]") {
  const auto panels = test::panels(test::fixture_result());
  const auto rows =
      reports::read_published(test::source_folder() + "/tests/reports/fixture_published.csv");
  CHECK(reports::published_times(rows, panels[0]).size() == 8);
  CHECK(reports::published_times(rows, panels[1]).empty());  // another pass
  CHECK(reports::published_times(rows, panels[2]).empty());  // another task
  CHECK(reports::published_bytes(rows, panels[0]).empty());
  const auto figure = reports::draw("time", panels[0], {"softmax", "latte, scan"}, rows).at(0);
  std::size_t layers = 0;
  for (const Json& layer : test::layers_of(figure.spec)) {
    if (!layer.contains("data") || layer["data"]["name"] != "published") continue;
    ++layers;
    CHECK(layer["data"]["values"].size() == 8);
    const Json& mark = layer["mark"];
    CHECK((mark.contains("strokeDash") || !mark.value("filled", true)));
  }
  CHECK(layers == 2);
  CHECK(test::unit_of(figure.spec)["encoding"]["x"]["scale"]["domain"] == Json({256, 16384}));
}

TEST_CASE("published ratios are drawn in the figure of speedups alone", "[reports]") {
  const auto rows =
      published_rows("label,length,speedup,megabytes\nflash,1024,3.5,2\nabc,1024,9,\n");
  CHECK(*rows[0].bytes == 2e6);
  const auto panel = test::first_panel(test::fixture_result());
  const auto ratios = reports::published_speedups(rows, panel);
  REQUIRE(ratios.size() == 1);  // abc is no label of the result
  CHECK(ratios[0].y == 3.5);
  const auto figure = reports::draw("speedup", panel, reports::Palette(panel.series), rows).at(0);
  CHECK_THAT(figure.caption, Catch::Contains("published"));
  CHECK_THAT(figure.spec["title"]["subtitle"].dump(), Catch::Contains("Hollow: published"));
  CHECK_THAT(reports::draw("time", panel, reports::Palette(panel.series), rows).at(0).caption,
             !Catch::Contains("published"));
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
      if (row.speedup) CHECK(*row.speedup > 0);
    }
  }
  CHECK(files >= 4);
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
      CHECK((*row.accuracy > 0.1 && *row.accuracy < 1));  // ten classes
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
}
