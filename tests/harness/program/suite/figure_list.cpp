#include "harness/program/suite/figure_list.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/failure.hpp"
#include "harness/program/suite/suite.hpp"
#include "reports/draw.hpp"
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

/// Whether a file of the suite's report may have this name: a label of a task, then a figure that
/// the task or the suite lists, or any known one where neither lists some.
bool draws_it(const nlohmann::json& document, std::string file) {
  // On the paper's axes, which have to be known.
  const std::size_t paper = file.find("_paper_");
  if (paper != std::string::npos) {
    const auto& axes = suite::paper_axes();
    const auto known = axes.find(document.value("figure", ""));
    if (known == axes.end() || !known->second.logarithmic) return false;
    file.erase(paper, std::string("_paper").size());
  }
  nlohmann::json tasks = document.value("tasks", nlohmann::json::object());
  if (tasks.empty()) tasks[document.value("task", "kernel")] = nlohmann::json::object();
  for (const auto& [label, task] : tasks.items()) {
    std::string start = label + "_";
    for (char& letter : start) {
      if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
    }
    if (file.rfind(start, 0) != 0) continue;
    std::string figure = file.substr(start.size());
    if (figure == "peak_memory") figure = "memory";  // its file is named after the quantity
    std::vector<std::string> listed = reports::figure_names();
    for (const nlohmann::json& level : {document, task}) {
      if (level.contains("figures")) listed = level["figures"].get<std::vector<std::string>>();
    }
    if (std::find(listed.begin(), listed.end(), figure) != listed.end()) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("The list has the 31 figures and tables with results, each once", "[figures]") {
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
          {"latte_v1", 6}, {"latte_v2", 9}, {"blog", 3}, {"lavo", 11}, {"linear_transformer", 2}});
  REQUIRE(suite::find_paper_figure("latte_v2.figure_6") != nullptr);
  CHECK(suite::find_paper_figure("latte_v2.figure_6")->label == "Latte v2, Figure 6");
  CHECK(suite::find_paper_figure("latte_v2.figure_9") == nullptr);
}

TEST_CASE("The axes of a paper's figure are a scale and units", "[figures]") {
  using nlohmann::json;
  const auto axes = suite::paper_axes().at("latte_v1.figure_2");
  CHECK(axes.figure == "Latte v1, Figure 2");
  CHECK((axes.logarithmic == false && axes.time_unit == "ms" && axes.memory_unit == "MiB"));
  CHECK_FALSE(
      suite::paper_axes().at("latte_v2.figure_7").logarithmic);  // the caption has a unit only
  CHECK(suite::axes_from({{"scale", "log"}, {"source", "s"}}, "").logarithmic == true);
  const auto refusal = [](const json& bad) -> std::string {
    try {
      suite::axes_from(bad, "");
    } catch (const UsageFailure& failure) {
      return failure.what();
    }
    return "not refused: " + bad.dump();
  };
  CHECK_THAT(refusal("linear"), Contains("/axes: expected an object"));
  CHECK_THAT(refusal({{"scale", "lin"}, {"source", "s"}}),
             Contains("/axes/scale: expected one of linear, log, found \"lin\""));
  CHECK_THAT(refusal({{"scale", 2}, {"source", "s"}}),
             Contains("/axes/scale: ") && Contains("found 2"));
  CHECK_THAT(refusal({{"time", "MiB"}, {"source", "s"}}),
             Contains("/axes/time: ") && Contains("ms"));
  CHECK_THAT(refusal({{"memory", "ms"}, {"source", "s"}}),
             Contains("/axes/memory: ") && Contains("MiB"));
  CHECK_THAT(refusal({{"scales", "log"}, {"source", "s"}}),
             Contains("/axes/scales: no member") && Contains("did you mean \"scale\"?"));
  CHECK_THAT(refusal({{"scale", "log"}}), Contains("/axes/source: expected a text"));
  CHECK_THAT(refusal({{"scale", "log"}, {"source", ""}}),
             Contains("/axes/source: expected a text"));
  CHECK_THAT(refusal({{"scale", "log"}, {"source", 1}}), Contains("/axes/source: expected a text"));
  CHECK_THAT(refusal({{"source", "s"}}), Contains("expected one of scale, time and memory"));
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
    const std::string suite = test::source_folder() + "/suites/" + picture.suite + ".json";
    REQUIRE(std::filesystem::exists(suite));
    const auto document = suite::load(suite);
    CHECK((picture.profile.empty() || document.value["profiles"].contains(picture.profile)));
    CHECK(suite::gallery_profile(picture.suite) == picture.profile);
  }
  CHECK(suite::gallery_profile("lavo_table_11") == "quick");
}

TEST_CASE("Pictures are figures that their suites draw", "[figures]") {
  for (const suite::Picture& picture : suite::gallery_pictures()) {
    INFO(picture.suite << ": " << picture.figure);
    CHECK(draws_it(suite::load(test::source_folder() + "/suites/" + picture.suite + ".json").value,
                   picture.figure));
  }
  const auto document = suite::load(test::source_folder() + "/suites/lavo_table_2_cost.json").value;
  CHECK(draws_it(document, "kernel_peak_memory"));
  CHECK_FALSE(draws_it(document, "kernel_slopes"));  // known, and not asked for
  CHECK_FALSE(draws_it(document, "kernel_sloops"));
  CHECK_FALSE(draws_it(document, "kernel_paper_time"));  // of a table, which has no axes
  CHECK_FALSE(draws_it(document, "decode_time"));
}
