#include "reports/tables/tables.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/result/document.hpp"
#include "core/text/printable.hpp"
#include "reports/page/facts.hpp"
#include "reports/page/page.hpp"
#include "reports/tables/csv.hpp"
#include "reports/tables/grid.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench::result;
using Json = nlohmann::json;
using namespace attnbench;

namespace {

Json fixture() { return read_result(test::source_folder() + "/tests/reports/fixture.json"); }

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("the table shows time, memory and what is not ok", "[result]") {
  const std::string text = table(fixture(), {120, Letters::utf8});
  CHECK_THAT(text, Catch::Contains("kernel, pass=forward\n"));
  CHECK_THAT(text, Catch::Contains("kernel, pass=forward+backward\n"));
  CHECK_THAT(text, Catch::Contains("time of step"));
  CHECK_THAT(text, Catch::Contains("workspace"));
  CHECK_THAT(text, Catch::Contains("state"));
  CHECK_THAT(text, Catch::Contains("generated tokens per second") && Catch::Contains("200000"));
  CHECK_THAT(text, Catch::Contains(" ms ±"));
  CHECK_THAT(text, Catch::Contains("latte, vectorised at length 8192: wrong: its values differ"));
  CHECK_THAT(text, Catch::Contains(
                       "window at length 256, 512, 1024, 2048, 4096, 8192: unsupported: window"));
  CHECK_THAT(text, Catch::Contains("softmax at length 8192: out_of_memory: wanted 3.00 GiB"));
}

TEST_CASE("growth exponents stand beside the claimed ones where sizes suffice", "[result]") {
  const std::string text = table(fixture(), {120, Letters::utf8});
  CHECK_THAT(text, Catch::Contains("growth exponents in length"));
  const Json result = fixture();
  const auto grids = grids_of(test::panels(result)[0], Letters::utf8);
  const Grid& growth = grids.back();
  CHECK(growth.columns == std::vector<std::string>{"time", "claimed", "workspace", "claimed"});
  REQUIRE(growth.rows.front().first == "softmax");
  CHECK(growth.rows.front().second[1] == "2.00: held");
  CHECK(std::stod(growth.rows.front().second[0]) == Approx(2).margin(0.1));
  CHECK(growth.rows.front().second[2] == "2.00");
  Json few = fixture();
  auto& cells = few["attnbench"]["cells"];
  cells.erase(cells.begin() + 2, cells.end());
  CHECK(grids_of(test::panels(few)[0], Letters::utf8).back().title != growth.title);
}

TEST_CASE("an unsteady time says so, and once by how much", "[result]") {
  Json result = fixture();
  CHECK(table(result, {80, Letters::utf8}).find("unsteady") == std::string::npos);
  Json& cell = result["attnbench"]["cells"][0];
  Json& timing = cell["timing"][cell["primary"].get<std::string>()];
  timing["high_seconds"] = 470 * timing["median_seconds"].get<double>();
  const std::string text = table(result, {80, Letters::utf8});
  CHECK_THAT(text, Catch::Contains("s unsteady"));
  CHECK_THAT(text, Catch::Contains("up to 470"));
  CHECK(text.find("46900") == std::string::npos);
  CHECK(text.find("up to 470") == text.rfind("up to 470"));
}

TEST_CASE("the table keeps to the terminal's width", "[result]") {
  for (const std::size_t width : {40u, 60u, 80u, 200u}) {
    for (const std::string& line : lines_of(table(fixture(), {width, Letters::utf8}))) {
      const bool is_reason = line.rfind("  ", 0) == 0 && line.find(": ") != std::string::npos;
      INFO(width << ": " << line);
      CHECK((is_reason || display_width(line) <= width));
    }
  }
}

TEST_CASE("an ASCII terminal gets ASCII", "[result]") {
  const std::string text = table(fixture(), {80, Letters::ascii});
  CHECK(std::all_of(text.begin(), text.end(), [](char letter) { return letter > 0; }));
  CHECK_THAT(text, Catch::Contains("+-"));
}

TEST_CASE("every cell appears in the columns of its axis value", "[result]") {
  Json result = fixture();
  auto& cells = result["attnbench"]["cells"];
  cells.erase(cells.begin() + 1, cells.end());
  const std::string text = table(result, {80, Letters::ascii});
  const auto lines = lines_of(text);
  CHECK(lines[0] == "kernel");
  CHECK_THAT(text, Catch::Contains("length"));
  CHECK_THAT(text, Catch::Contains("256"));
  CHECK(text.find("512") == std::string::npos);
}

TEST_CASE("statuses are counted in their order", "[result]") {
  CHECK(status_line(fixture()) ==
        "88 cells: 79 ok, 1 wrong, 6 unsupported, 1 out_of_memory, 1 timeout");
}

TEST_CASE("the closing lines count disturbed cells and say what to do", "[result]") {
  Json result = fixture();
  CHECK(disturbed_line(result, "runs/x").empty());
  for (std::size_t i = 0; i < 3; ++i) result["attnbench"]["cells"][i]["status"] = "disturbed";
  CHECK_THAT(status_line(result), Catch::Contains("76 ok") && Catch::Contains("3 disturbed"));
  CHECK_THAT(disturbed_line(result, "runs/x"),
             Catch::Contains("3 cells were disturbed") &&
                 Catch::Contains("attnbench run --resume runs/x --retry disturbed"));
}

TEST_CASE("text is made safe for where it goes", "[reports]") {
  CHECK(result::escape_html("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;&#39;");
  CHECK(result::escape_latex("50 % of a_b & {c}\\") ==
        "50 \\% of a\\_b \\& \\{c\\}\\textbackslash{}");
  CHECK(result::escape_markdown("a|b_c\n") == "a\\|b\\_c ");
  CHECK(result::escape_csv("latte, \"scan\"") == "\"latte, \"\"scan\"\"\"");
  CHECK(result::escape_csv("plain") == "plain");
}

TEST_CASE("Markdown and LaTeX have every panel with its settings", "[reports]") {
  const std::string markdown = reports::markdown_tables(fixture());
  CHECK_THAT(markdown, Catch::Contains("**kernel: time of forward (B=1, H=4, D=32"));
  CHECK_THAT(markdown, Catch::Contains("| softmax | 162 µs ±0.8 % |"));
  CHECK_THAT(markdown, Catch::Contains("out\\_of\\_memory: wanted 3.00 GiB"));
  const std::string latex = reports::latex_tables(fixture());
  CHECK_THAT(latex, Catch::Contains("\\begin{tabular}{lrrrrrr}"));
  CHECK_THAT(latex, Catch::Contains("out\\_of\\_memory"));
  CHECK(latex.find(" % ") == std::string::npos);
}

TEST_CASE("the CSV has a line per timing, and one per cell without", "[reports]") {
  const Json result = fixture();
  std::size_t expected = 1;
  for (const Json& cell : result["attnbench"]["cells"]) {
    expected += std::max<std::size_t>(1, cell.value("timing", Json::object()).size());
  }
  std::istringstream csv(reports::csv_table(result));
  std::size_t lines = 0;
  std::size_t columns = 0;
  for (std::string line; std::getline(csv, line); ++lines) {
    bool quoted = false;
    std::size_t commas = 0;
    for (const char letter : line) {
      if (letter == '"') quoted = !quoted;
      commas += letter == ',' && !quoted;
    }
    if (lines == 0) columns = commas;
    CHECK(commas == columns);
  }
  CHECK(lines == expected);
}

TEST_CASE("ceilings have the unit of their name", "[reports]") {
  CHECK(reports::ceiling_text("fma_float32_flops_per_second", 1.1e11) == "110 GFLOP/s");
  CHECK(reports::ceiling_text("bandwidth_l1_bytes_per_second", 1024.0 * 1024 * 1024) ==
        "1.00 GiB/s");
  CHECK(reports::ceiling_text("exp_float32_per_second", 1.2e9) == "1.20 G/s");
  CHECK(reports::ceiling_text("capacity_l1_bytes", 49152) == "48.0 KiB");
}

TEST_CASE("a run that was interrupted says so at the top", "[reports]") {
  Json result = fixture();
  CHECK(reports::header_html(result).find("not complete") == std::string::npos);
  result["attnbench"]["run"]["state"] = "interrupted";
  CHECK_THAT(reports::header_html(result), Catch::Contains("not complete: interrupted"));
}
