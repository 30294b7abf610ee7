#include "harness/suite/figure_list.hpp"

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "core/failure.hpp"
#include "harness/suite/suite.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

namespace {

std::string refusal_of(const std::string& figure) {
  const test::TemporaryFolder folder;
  test::write_file(folder / "s.json", "{\"name\": \"s\", \"task\": \"kernel\",\n\"figure\": \"" +
                                          figure + "\",\n\"mechanisms\": [\"latte\"]}");
  try {
    suite::load(folder / "s.json");
  } catch (const UsageFailure& failure) {
    return failure.what();
  }
  return {};
}

}  // namespace

TEST_CASE("The list has the 28 figures and tables with results, each once", "[figures]") {
  std::set<std::string> names;
  std::map<std::string, int> of_paper;
  for (const suite::PaperFigure& figure : suite::paper_figures()) {
    INFO(figure.name);
    CHECK(names.insert(figure.name).second);
    CHECK(!figure.title.empty());
    CHECK((!figure.missing.empty() || !figure.differs.empty()));
    ++of_paper[figure.paper];
  }
  CHECK(
      of_paper ==
      std::map<std::string, int>{
          {"latte_v1", 6}, {"latte_v2", 8}, {"blog", 1}, {"lavo", 11}, {"linear_transformer", 2}});
  REQUIRE(suite::find_paper_figure("latte_v2.figure_6") != nullptr);
  CHECK(suite::find_paper_figure("latte_v2.figure_6")->label == "Latte v2, Figure 6");
  CHECK(suite::find_paper_figure("latte_v2.figure_9") == nullptr);
}

TEST_CASE("A suite may name a figure of the list and no other", "[figures]") {
  CHECK(refusal_of("lavo.table_10").empty());
  CHECK_THAT(refusal_of("lavo.table_1O"),
             Contains("s.json:2: /figure: ") && Contains("did you mean \"lavo.table_10\"?"));
  CHECK_THAT(refusal_of("figure 2"), Contains("/figure: there is no figure or table"));
  CHECK_THAT(refusal_of(""), Contains("/figure: there is no figure or table \"\""));
}

TEST_CASE("Pictures have files of their own and come from suites that are there", "[figures]") {
  std::set<std::string> files;
  REQUIRE(suite::gallery_pictures().size() >= 17);
  for (const suite::Picture& picture : suite::gallery_pictures()) {
    INFO(picture.file);
    CHECK(files.insert(picture.file).second);
    CHECK(!picture.alt.empty());
    CHECK(!picture.caption.empty());
    const std::string suite = ATTNBENCH_SOURCE_DIR "/suites/" + picture.suite + ".json";
    REQUIRE(std::filesystem::exists(suite));
    const auto document = suite::load(suite);
    CHECK((picture.profile.empty() || document.value["profiles"].contains(picture.profile)));
    CHECK(suite::gallery_profile(picture.suite) == picture.profile);
  }
  CHECK(suite::gallery_profile("lavo_table_11") == "quick");
}
