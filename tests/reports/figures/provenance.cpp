#include "reports/figures/provenance.hpp"

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "core/result/document.hpp"
#include "reports/report.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

const std::string stored_fixture = test::source_folder() + "/tests/reports/fixture.json";

/// All lines of a title or a subtitle.
std::string title_text(const Json& lines) {
  if (!lines.is_array()) return lines.get<std::string>();
  std::string text;
  for (const Json& line : lines) text += line.get<std::string>() + "\n";
  return text;
}

std::vector<Json> written_specs(const std::vector<std::filesystem::path>& results,
                                const test::TemporaryFolder& folder) {
  reports::ReportOptions options;
  options.out = folder / "out";
  options.render = false;
  std::vector<Json> specs;
  for (const auto& file : reports::write_report(results, options).figures) {
    specs.push_back(Json::parse(test::read_file(file)));
  }
  return specs;
}

reports::Figure titled_figure(const char* title, const char* group) {
  reports::Figure one;
  one.title = title;
  one.group = group;
  one.spec = {{"title", {{"text", title}, {"subtitle", "causal"}}}};
  return one;
}

}  // namespace

TEST_CASE("every figure says where and when it was measured", "[reports]") {
  const test::TemporaryFolder folder;
  const std::vector<Json> specs = written_specs({stored_fixture}, folder);
  REQUIRE(specs.size() > 5);
  for (const Json& spec : specs) {
    const std::string title = title_text(spec["title"]["text"]);
    INFO(title);
    CHECK_THAT(title, Contains("Four mechanisms <side by side> & a wrong one"));
    CHECK_THAT(title_text(spec["title"]["subtitle"]),
               Contains("Example CPU 3.0 GHz") && Contains("2 threads") && Contains("2026-01-02"));
    CHECK_THAT(spec["description"].get<std::string>(),
               Contains("Example CPU 3.0 GHz") && Contains("2 threads"));
  }
}

TEST_CASE("no two figures of a result have one title", "[reports]") {
  for (const char* name :
       {"fixture", "fixtures/decode", "fixtures/mqar_smoke", "fixtures/quickstart"}) {
    const test::TemporaryFolder folder;
    const std::string file = test::source_folder() + "/tests/reports/" + name + ".json";
    std::set<std::string> titles;
    for (const Json& spec : written_specs({file}, folder)) {
      const std::string title = title_text(spec["title"]["text"]);
      INFO(name << ": " << title);
      CHECK(titles.insert(title).second);
    }
  }
}

TEST_CASE("figures of one title get the names of their groups, or numbers", "[reports]") {
  std::vector<reports::Figure> figures{titled_figure("Workspace", "kernel, pass=forward"),
                                       titled_figure("Workspace", "kernel, pass=backward"),
                                       titled_figure("Time", "kernel, pass=forward"),
                                       titled_figure("Rates", "mqar"),
                                       titled_figure("Rates", "mqar")};
  reports::tell_titles_apart(figures);
  CHECK(figures[0].title == "Workspace: kernel, pass=forward");
  CHECK(figures[1].title == "Workspace: kernel, pass=backward");
  CHECK(figures[2].title == "Time");
  CHECK(figures[3].title == "Rates: mqar");
  CHECK(figures[4].title == "Rates: mqar (2)");
  CHECK(title_text(figures[1].spec["title"]["text"]) == "Workspace: kernel, pass=backward\n");
  CHECK(figures[1].spec["title"]["subtitle"] == "causal");
  CHECK(figures[2].spec["title"]["text"] == "Time");
}
