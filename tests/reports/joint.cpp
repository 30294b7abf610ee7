#include "reports/joint.hpp"

#include <algorithm>

#include "core/failure.hpp"
#include "reports/report.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

namespace {

/// The fixture as it was measured at `time`, of a program built from `commit`.
result::Result measured(const std::string& time, const std::string& commit) {
  result::Result result = test::fixture_result();
  result.run.finished_at = time;
  result.provenance.commit = commit;
  return result;
}

std::vector<result::Result> two_days() {
  return {measured("2026-01-02T03:05:35", "0123456789ab"),
          measured("2026-01-03T03:05:35", "ba9876543210")};
}

const reports::Figure& figure_called(const std::vector<reports::Figure>& figures,
                                     const std::string& part) {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const auto& figure) {
    return figure.name.find(part) != std::string::npos;
  });
  REQUIRE(found != figures.end());
  return *found;
}

/// The value that `channel` has for `series` in the first layer of the figure that encodes it.
Json look_of(const Json& spec, const std::string& channel, const std::string& series) {
  if (spec.is_object() && spec.contains(channel) && spec[channel].contains("scale")) {
    const Json& scale = spec[channel]["scale"];
    for (std::size_t i = 0; i < scale["domain"].size(); ++i) {
      if (scale["domain"][i] == series) return scale["range"][i];
    }
  }
  if (!spec.is_structured()) return {};
  for (const auto& [key, part] : spec.items()) {
    if (Json found = look_of(part, channel, series); !found.is_null()) return found;
  }
  return {};
}

}  // namespace

TEST_CASE("results are told apart by the day and the commit, then by the time, then by a number",
          "[reports]") {
  CHECK(reports::names_apart(two_days()) ==
        std::vector<std::string>{"2026-01-02 01234567", "2026-01-03 ba987654"});
  CHECK(reports::names_apart({measured("2026-01-02T03:05:35", "0123456789ab"),
                              measured("2026-01-02T13:07:35", "0123456789ab")}) ==
        std::vector<std::string>{"2026-01-02 01234567 03:05", "2026-01-02 01234567 13:07"});
  CHECK(reports::names_apart({measured("", ""), measured("", "")}) ==
        std::vector<std::string>{"(1)", "(2)"});
  // A name that begins another would be found in it.
  CHECK(reports::names_apart(
            {measured("2026-01-02T03:05:35", "abc"), measured("2026-01-02T03:05:35", "abcdef")}) ==
        std::vector<std::string>{"2026-01-02 abc 03:05", "2026-01-02 abcdef 03:05"});
}

TEST_CASE("labels have the one part of a result's name that tells it apart", "[reports]") {
  CHECK(reports::brief_names(two_days()) == std::vector<std::string>{"01-02", "01-03"});
  CHECK(reports::brief_names(
            {measured("2025-01-02T03:05:35", "a"), measured("2026-01-02T03:05:35", "a")}) ==
        std::vector<std::string>{"2025-01-02", "2026-01-02"});
  CHECK(reports::brief_names({measured("2026-01-02T03:05:35", "0123456789ab"),
                              measured("2026-01-02T13:07:35", "ba9876543210")}) ==
        std::vector<std::string>{"01234567", "ba987654"});
  CHECK(reports::brief_names({measured("2026-01-02T03:05:35", "0123456789ab"),
                              measured("2026-01-02T13:07:35", "0123456789ab")}) ==
        std::vector<std::string>{"2026-01-02 01234567 03:05", "2026-01-02 01234567 13:07"});
  CHECK(reports::brief_names({measured("", ""), measured("", "")}) ==
        std::vector<std::string>{"(1)", "(2)"});
}

TEST_CASE("lines of two results have one colour a mechanism, the second dashed, and no crossings",
          "[reports]") {
  const auto results = two_days();
  const auto names = reports::names_apart(results);
  const result::Result joint = reports::joined(results, names);
  CHECK(joint.cells.size() == 2 * results[0].cells.size());
  CHECK(joint.suite.title == names[0] + " beside " + names[1]);
  const auto figures = reports::joint_figures(joint, names);
  const Json& spec = figure_called(figures, "side_by_side_kernel_time").spec;
  const std::string first = "linear · " + names[0];
  const std::string second = "linear · " + names[1];
  CHECK(look_of(spec, "color", first) == look_of(spec, "color", second));
  CHECK(look_of(spec, "color", first) != look_of(spec, "color", "flash · " + names[0]));
  CHECK(look_of(spec, "strokeDash", first) == Json{1, 0});
  CHECK(look_of(spec, "strokeDash", second) != Json{1, 0});
  for (const reports::Figure& figure : figures) {
    CHECK_THAT(figure.caption, Contains("Solid: " + names[0] + ". Dashed: " + names[1] + "."));
    CHECK_THAT(figure.spec.dump(), !Contains("\"crossings\""));
  }
}

TEST_CASE("only cells that two results have are drawn beside each other", "[reports]") {
  auto results = two_days();
  std::erase_if(results[1].cells, [](const auto& cell) { return cell.label != "flash"; });
  const auto names = reports::names_apart(results);
  const result::Result joint = reports::joined(results, names);
  CHECK(joint.cells.size() == 2 * results[1].cells.size());
  for (const auto& cell : joint.cells) CHECK_THAT(cell.label, Contains("flash · "));
  results[1].cells.clear();
  CHECK(reports::joined(results, names).cells.empty());
}

TEST_CASE("what all results share is said, what one alone has is not", "[reports]") {
  auto results = two_days();
  const auto names = reports::names_apart(results);
  for (auto& result : results) {
    result.suite.notes = "read this";
    result.machine.host = "here";
  }
  CHECK(reports::joined(results, names).suite.notes == "read this");
  CHECK(reports::joined(results, names).machine.host == "here");
  results[1].suite.notes = "read that";
  results[1].machine.host = "there";
  results[1].machine.devices["cuda"].name = "Example GPU";
  CHECK_FALSE(reports::joined(results, names).suite.notes);
  CHECK(reports::joined(results, names).machine.host.empty());
  CHECK(reports::joined(results, names).machine.devices.empty());
  CHECK(reports::joined(results, names).machine.cpu_model == results[0].machine.cpu_model);
  // A third that shares no cell is not named.
  results.push_back(measured("2026-01-04T03:05:35", "cccccccc"));
  results.back().cells.clear();
  const auto three = reports::joined(results, reports::names_apart(results));
  CHECK(three.suite.title == names[0] + " beside " + names[1]);
}

TEST_CASE("mechanisms of one colour stand in figures of their own", "[reports]") {
  std::vector<result::Result> results = two_days();
  for (int i = 0; i < 2; ++i) {
    results[static_cast<std::size_t>(i)].cells.clear();
    for (const char* label : {"softmax", "sequential", "linear"}) {
      for (const int length : {256, 512}) {
        test::CellBuilder cell(label);
        cell.named(label + std::to_string(length)).length(length).took(length * 1e-6 * (i + 1));
        if (std::string(label) == "sequential") cell.mechanism = "softmax";
        results[static_cast<std::size_t>(i)].cells.push_back(cell);
      }
    }
  }
  const auto names = reports::brief_names(results);
  std::vector<std::set<std::string>> drawn;
  for (const auto& figure : reports::joint_figures(reports::joined(results, names), names)) {
    if (figure.what != "time") continue;
    std::set<std::string>& series = drawn.emplace_back();
    for (const Json& row : figure.spec["data"]["values"]) series.insert(row["series"]);
  }
  REQUIRE(drawn.size() == 2);
  CHECK(drawn[0] == std::set<std::string>{"softmax · 01-02", "softmax · 01-03", "linear · 01-02",
                                          "linear · 01-03"});
  CHECK(drawn[1] == std::set<std::string>{"sequential · 01-02", "sequential · 01-03"});
}

TEST_CASE("more lines than a pair of axes has room for are several figures", "[reports]") {
  std::vector<result::Result> results;
  for (int day = 1; day < 3; ++day) {
    result::Result& result = results.emplace_back(
        measured("2026-01-0" + std::to_string(day) + "T00:00:00", "0123456789ab"));
    result.cells.clear();
    for (int i = 0; i < 9; ++i) {
      const std::string label = "variant " + std::to_string(i);
      for (const int length : {256, 512}) {
        result.cells.push_back(test::CellBuilder(label)
                                   .named(label + std::to_string(length))
                                   .length(length)
                                   .took(length * 1e-6 * day));
      }
    }
  }
  const auto names = reports::names_apart(results);
  std::vector<std::size_t> lines;
  std::vector<std::string> titles;
  for (const auto& figure : reports::joint_figures(reports::joined(results, names), names)) {
    if (figure.what != "time") continue;
    std::set<std::string> series;
    for (const Json& row : figure.spec["data"]["values"]) series.insert(row["series"]);
    lines.push_back(series.size());
    titles.push_back(figure.title);
  }
  CHECK(lines == std::vector<std::size_t>{14, 4});
  CHECK(titles.front() != titles.back());
}

TEST_CASE("a page of two results begins with both side by side, and says what it compared",
          "[reports]") {
  const test::TemporaryFolder folder;
  const auto results = two_days();
  for (const auto& result : results) {
    std::filesystem::create_directories(folder / result.provenance.commit);
    result::write_result(folder / result.provenance.commit / "result.json", result);
  }
  reports::ReportOptions options;
  options.out = folder / "out";
  options.render = false;
  options.compared = [](const result::Result& base, const result::Result& changed) {
    reports::Verdicts verdicts;
    verdicts.turns.apart = base.provenance.commit + " and " + changed.provenance.commit;
    reports::PairVerdict& pair = verdicts.pairs.emplace_back();
    pair.name = "linear length=256";
    pair.verdict = "FAST";
    return verdicts;
  };
  const std::vector<std::filesystem::path> both{folder / "0123456789ab", folder / "ba9876543210"};
  const auto report = reports::write_report(both, options);
  CHECK(report.verdicts.size() == 2);
  REQUIRE(report.compared);
  CHECK(report.compared->turns.changed == "2026-01-03 ba987654");
  const std::string page = test::read_file(report.page);
  const auto at = [&](const std::string& text) { return page.find(text); };
  CHECK(at("<h1>2026-01-02 01234567 beside 2026-01-03 ba987654</h1>") < at("id=\"result-1\""));
  CHECK_THAT(page,
             Contains("2026-01-03 ba987654 compared with 2026-01-02 01234567, measured apart: "
                      "0123456789ab and ba9876543210") &&
                 Contains("<td>linear length=256</td><td>FAST</td>"));
  CHECK_FALSE(std::filesystem::exists(folder / "out/tables/.md"));
  CHECK(std::filesystem::exists(folder / "out/tables/fixture_2.csv"));

  result::Result other = results[1];
  for (auto& cell : other.cells) cell.id += "x";
  result::write_result(folder / "ba9876543210" / "result.json", other);
  const auto apart = reports::write_report(both, options);
  CHECK_FALSE(apart.compared);
  CHECK_THAT(apart.messages.back(), Contains("no two of the results share a cell"));
}
