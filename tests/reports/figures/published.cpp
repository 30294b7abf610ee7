#include "reports/figures/published.hpp"

#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/result/document.hpp"
#include "reports/figures/figure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

const std::string folder = std::string(ATTNBENCH_SOURCE_DIR) + "/tests/reports/";

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
  const auto panels = result::panels(result);
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
  const auto panels = result::panels(result);
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
  const std::filesystem::path suites = std::string(ATTNBENCH_SOURCE_DIR) + "/suites";
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
      // Accuracies are shown of models that we do not have, too, and under their source's name.
      CHECK((row.accuracy ? !row.source.empty() : suite["mechanisms"].contains(row.label)));
      CHECK((row.seconds || row.bytes || row.speedup || row.accuracy));
      if (row.accuracy) CHECK((*row.accuracy >= 0 && *row.accuracy <= 1));
    }
  }
  CHECK(files >= 4);
}

TEST_CASE("published numbers are drawn hollow and dashed", "[reports]") {
  const Json result = result::read_result(folder + "fixture.json");
  const auto rows = reports::read_published(folder + "fixture_published.csv");
  const auto figure =
      reports::draw("time", result::panels(result)[0], {"softmax", "latte, scan"}, rows).at(0);
  std::size_t layers = 0;
  for (const Json& layer : figure.spec["layer"][0]["layer"]) {
    if (!layer.contains("data") || layer["data"]["name"] != "published") continue;
    ++layers;
    CHECK((layer["mark"].contains("strokeDash") || layer["mark"]["filled"] == false));
    CHECK(layer["data"]["values"].size() == 8);
  }
  CHECK(layers == 2);
  CHECK(figure.spec["encoding"]["x"]["scale"]["domain"] == Json({256, 16384}));
}
