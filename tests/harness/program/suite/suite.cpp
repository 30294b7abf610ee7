#include "harness/program/suite/suite.hpp"

#include <set>

#include "harness/program/suite/profile.hpp"
#include "harness/program/suite/schema_check.hpp"
#include "harness/program/suite/shapes.hpp"
#include "tests/harness/program/suite/malformed.hpp"
#include "tests/support/files.hpp"

namespace {

namespace fs = std::filesystem;
using attnbench::suite::Choices;
using attnbench::suite::Json;

std::vector<fs::path> suite_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(attnbench::test::source_folder() + "/suites")) {
    const bool is_suite =
        entry.path().extension() == ".json" && !attnbench::suite::holds_shapes(entry.path());
    if (is_suite) files.push_back(entry.path());
  }
  return files;
}

}  // namespace

TEST_CASE("Every suite that comes with the program has its name, a title and a quick profile",
          "[suite]") {
  REQUIRE(suite_files().size() >= 11);
  for (const fs::path& file : suite_files()) {
    INFO(file);
    const auto document = attnbench::suite::load(file);
    CHECK(document.value["name"] == file.stem().string());
    CHECK(document.value.value("title", "") != "");
    CHECK(document.value["profiles"].contains("quick"));
    const std::string published = document.value.value("published", "");
    CHECK((published.empty() || fs::exists(file.parent_path() / published)));
  }
}

TEST_CASE("A suite with a source has a profile paper, which is the suite itself", "[suite]") {
  int followers = 0;
  for (const fs::path& file : suite_files()) {
    const auto document = attnbench::suite::load(file);
    if (!document.value.contains("source")) continue;
    INFO(file);
    ++followers;
    CHECK(document.value["profiles"].value("paper", Json()) == Json::object());
  }
  CHECK(followers >= 16);
}

TEST_CASE("A quick profile is smaller than the whole, and no two cells share an id", "[suite]") {
  const auto catalogue = attnbench::test::catalogue();
  // The suites whose words the catalogue of these tests knows; the program's tests expand them all.
  for (const char* name : {"latte_v1_figure_2", "latte_v1_figure_4"}) {
    INFO(name);
    const auto document = attnbench::suite::load(attnbench::test::source_folder() + "/suites/" +
                                                 std::string(name) + ".json");
    const auto full = attnbench::suite::expand(document, catalogue, {});
    Choices choices;
    choices.profile = "quick";
    const auto quick = attnbench::suite::expand(document, catalogue, choices);
    CHECK(quick.cells.size() < full.cells.size());
    CHECK(quick.measure["rounds"] <= full.measure["rounds"]);
    std::set<std::string> ids;
    for (const auto& cell : full.cells) ids.insert(cell.id);
    CHECK(ids.size() == full.cells.size());
  }
}

TEST_CASE("Schema and code know the same keys of measure", "[suite]") {
  const Json properties = attnbench::suite::schema()["definitions"]["measure"]["properties"];
  const Json& defaults = attnbench::suite::default_measure();
  CHECK(properties.size() == defaults.size());
  for (const auto& [key, value] : defaults.items()) CHECK(properties.contains(key));
}

TEST_CASE("The schema describes every place where a suite can be wrong", "[suite]") {
  const Json& schema = attnbench::suite::schema();
  const auto check = [](const Json& rules) {
    for (const auto& [name, rule] : rules.items()) {
      INFO(name);
      CHECK((rule.contains("description") || rule.contains("$ref")));
    }
  };
  check(schema["properties"]);
  check(schema["definitions"]);
  for (const auto& [name, rule] : schema["definitions"].items()) {
    if (rule.contains("properties")) check(rule["properties"]);
  }
}

TEST_CASE("Presets expand", "[suite]") {
  for (const auto& [name, preset] : attnbench::suite::presets().items()) {
    INFO(name);
    const Json text = {{"name", "s"},
                       {"task", "kernel"},
                       {"preset", name},
                       {"mechanisms", {"softmax", "latte", "window"}}};
    const std::string said = attnbench::test::complaint(text.dump());
    CHECK(said.empty());
    CHECK(preset.contains("title"));
    CHECK(preset.contains("source"));
  }
}

TEST_CASE("Loading checks the form, and that published numbers are there", "[suite]") {
  const attnbench::test::TemporaryFolder folder;
  const std::string text = R"({"name": "s", "task": "kernel", "mechanisms": ["latte"],
    "published": "numbers.csv"})";
  attnbench::test::write_file(folder / "s.json", text);
  CHECK_THROWS_WITH(attnbench::suite::load(folder / "s.json"),
                    Catch::Contains("s.json:2: /published: ") && Catch::Contains("numbers.csv"));
  attnbench::test::write_file(folder / "numbers.csv", "");
  const auto document = attnbench::suite::load(folder / "s.json");
  const auto suite = attnbench::suite::expand(document, attnbench::test::catalogue(), {});
  CHECK(suite.header["published"] == (folder / "numbers.csv").string());
  attnbench::test::write_file(folder / "t.json", R"({"nam": 1})");
  CHECK_THROWS_WITH(attnbench::suite::load(folder / "t.json"),
                    Catch::Contains("/nam: ") && Catch::Contains("\"name\" is missing"));
}
