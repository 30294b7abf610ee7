#include "reports/tables/tables.hpp"

#include <algorithm>
#include <sstream>

#include "core/result/document.hpp"
#include "reports/figures/escape.hpp"
#include "reports/page/page_facts.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

Json fixture() {
  return result::read_result(std::string(ATTNBENCH_SOURCE_DIR) + "/tests/reports/fixture.json");
}

}  // namespace

TEST_CASE("text is made safe for where it goes", "[reports]") {
  CHECK(reports::escape_html("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;&#39;");
  CHECK(reports::escape_latex("50 % of a_b & {c}\\") ==
        "50 \\% of a\\_b \\& \\{c\\}\\textbackslash{}");
  CHECK(reports::escape_markdown("a|b_c\n") == "a\\|b\\_c ");
  CHECK(reports::escape_csv("latte, \"scan\"") == "\"latte, \"\"scan\"\"\"");
  CHECK(reports::escape_csv("plain") == "plain");
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
