#include "reports/figures/provenance.hpp"

#include <set>

#include "reports/report.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

/// All lines of a title or a subtitle.
std::string title_text(const Json& lines) {
  if (!lines.is_array()) return lines.get<std::string>();
  std::string text;
  for (const Json& line : lines) text += line.get<std::string>() + "\n";
  return text;
}

reports::Figure titled_figure(const char* title, const char* group) {
  reports::Figure one;
  one.title = title;
  one.group = group;
  one.spec = {{"title", {{"text", title}, {"subtitle", "causal"}}}};
  return one;
}

}  // namespace

TEST_CASE("every figure says where and when it was measured, under a title of its own",
          "[reports]") {
  for (const std::string name :
       {"fixture", "fixtures/decode", "fixtures/mqar_smoke", "fixtures/quickstart"}) {
    const test::TemporaryFolder folder;
    reports::ReportOptions options;
    options.out = folder / "out";
    options.render = false;
    const auto report = reports::write_report({test::fixture_file(name)}, options);
    CHECK(report.figures.size() >= 2);
    std::set<std::string> titles;
    for (const auto& file : report.figures) {
      const Json spec = Json::parse(test::read_file(file));
      const std::string title = title_text(spec["title"]["text"]);
      INFO(name << ": " << title);
      CHECK(titles.insert(title).second);
      const std::string subtitle = title_text(spec["title"]["subtitle"]);
      CHECK_THAT(subtitle, Contains("2 threads") && Contains("2026-"));
      if (name != "fixture") continue;
      CHECK_THAT(title + subtitle, Contains("Four mechanisms <side by side> & a wrong one"));
      CHECK_THAT(subtitle, Contains("Example CPU 3.0 GHz") && Contains("2026-01-02"));
      CHECK_THAT(spec["description"].get<std::string>(),
                 Contains("Example CPU 3.0 GHz") && Contains("2 threads"));
    }
  }
}

TEST_CASE("the first figure has the answer as its title, and its own title below", "[reports]") {
  reports::Figure figure = titled_figure("Time", "kernel");
  figure.spec["title"] = {{"text", {"A suite, ", "and more", "Time"}},
                          {"subtitle", {"causal", "a CPU"}}};
  reports::lead_with(figure, "");
  CHECK(figure.spec["title"]["text"][0] == "A suite, ");
  reports::lead_with(figure,
                     "latte has the fastest forward pass at 2048 tokens: 4.0 times as fast "
                     "as exact attention");
  CHECK(title_text(figure.spec["title"]["text"]) ==
        "latte has the fastest forward pass at 2048 tokens: 4.0 times as fast as\nexact "
        "attention\n");
  CHECK(figure.spec["title"]["subtitle"] == Json({"A suite, and more. Time.", "causal", "a CPU"}));
}

TEST_CASE("figures of one title get the names of their groups, or numbers", "[reports]") {
  std::vector<reports::Figure> figures{titled_figure("Workspace", "kernel, pass=forward"),
                                       titled_figure("Workspace", "kernel, pass=backward"),
                                       titled_figure("Time", "kernel, pass=forward"),
                                       titled_figure("Rates", "mqar"),
                                       titled_figure("Rates", "mqar")};
  reports::tell_titles_apart(figures);
  std::vector<std::string> titles;
  for (const reports::Figure& figure : figures) titles.push_back(figure.title);
  CHECK(titles == std::vector<std::string>{"Workspace: kernel, pass=forward",
                                           "Workspace: kernel, pass=backward", "Time",
                                           "Rates: mqar", "Rates: mqar (2)"});
  CHECK(title_text(figures[1].spec["title"]["text"]) == "Workspace: kernel, pass=backward\n");
  CHECK(figures[1].spec["title"]["subtitle"] == "causal");
  CHECK(figures[2].spec["title"]["text"] == "Time");
}
