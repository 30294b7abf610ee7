#include "reports/tables/tables.hpp"

#include <algorithm>
#include <sstream>

#include "core/text/printable.hpp"
#include "reports/page/facts.hpp"
#include "reports/page/page.hpp"
#include "reports/tables/grid.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using namespace attnbench::result;

namespace {

const reports::TableStyle wide_style{120, text::Letters::utf8};

}  // namespace

TEST_CASE("the table shows time, memory, growth and what is not ok", "[result]") {
  Result result = test::fixture_result();
  const std::string text = reports::table(result, wide_style);
  for (const char* part :
       {"kernel, pass=forward\n", "kernel, pass=forward+backward\n", "time of step", "workspace",
        "state", "generated tokens per second", "200000", " ms ±", "growth exponents in length",
        "latte, vectorised at length 8192: wrong: its values differ",
        "window at length 256, 512, 1024, 2048, 4096, 8192: unsupported: window",
        "softmax at length 8192: out_of_memory: wanted 3.00 GiB"}) {
    CHECK_THAT(text, Catch::Contains(part));
  }
  CHECK_THAT(text, !Catch::Contains("unsteady"));
  const reports::Grid growth =
      reports::grids_of(test::first_panel(result), text::Letters::utf8).back();
  CHECK(growth.columns == std::vector<std::string>{"time", "claimed", "workspace", "claimed"});
  REQUIRE(growth.rows.front().first == "softmax");
  CHECK(growth.rows.front().second[1] == "2.00: held");
  CHECK(growth.rows.front().second[2] == "2.00");
  // Where sizes do not suffice there is none.
  result.cells.resize(2);
  CHECK(reports::grids_of(test::first_panel(result), text::Letters::utf8).back().title !=
        growth.title);
  result.cells.resize(1);
  CHECK_THAT(reports::table(result, {80, text::Letters::ascii}),
             Catch::StartsWith("kernel\n") && Catch::Contains("256") && !Catch::Contains("512"));
}

TEST_CASE("an unsteady time says so, and once by how much", "[result]") {
  Result result = test::fixture_result();
  CellRecord& cell = result.cells[0];
  Timing& timing = cell.timing[cell.primary];
  timing.high_seconds = 470 * timing.median_seconds;
  const std::string text = reports::table(result, {80, text::Letters::utf8});
  CHECK_THAT(text, Catch::Contains("s unsteady") && Catch::Contains("up to 470") &&
                       !Catch::Contains("46900"));
  CHECK(text.find("up to 470") == text.rfind("up to 470"));
}

TEST_CASE("the table keeps to the terminal's width, and to ASCII where asked", "[result]") {
  for (const std::size_t width : {40u, 60u, 80u, 200u}) {
    std::istringstream lines(reports::table(test::fixture_result(), {width, text::Letters::utf8}));
    for (std::string line; std::getline(lines, line);) {
      const bool is_reason = line.rfind("  ", 0) == 0 && line.find(": ") != std::string::npos;
      INFO(width << ": " << line);
      CHECK((is_reason || text::display_width(line) <= width));
    }
  }
  const std::string text = reports::table(test::fixture_result(), {80, text::Letters::ascii});
  CHECK(std::all_of(text.begin(), text.end(), [](char letter) { return letter > 0; }));
  CHECK_THAT(text, Catch::Contains("+-"));
}

TEST_CASE(
    "the closing lines count statuses in their order and say what to do about disturbed cells",
    "[result]") {
  Result result = test::fixture_result();
  CHECK(reports::status_line(result) ==
        "88 cells: 79 ok, 1 wrong, 6 unsupported, 1 out_of_memory, 1 timeout");
  CHECK(reports::disturbed_line(result, "runs/x").empty());
  for (std::size_t i = 0; i < 3; ++i) result.cells[i].status = Status::disturbed;
  CHECK_THAT(reports::status_line(result),
             Catch::Contains("76 ok") && Catch::Contains("3 disturbed"));
  CHECK_THAT(reports::disturbed_line(result, "runs/x"),
             Catch::Contains("3 cells were disturbed") &&
                 Catch::Contains("attnbench run --resume runs/x --retry disturbed"));
}

TEST_CASE("text is made safe for where it goes", "[reports]") {
  CHECK(text::escape_html("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;&#39;");
  CHECK(text::escape_latex("50 % of a_b & {c}\\") ==
        "50 \\% of a\\_b \\& \\{c\\}\\textbackslash{}");
  CHECK(text::escape_markdown("a|b_c\n") == "a\\|b\\_c ");
  CHECK(text::escape_csv("latte, \"scan\"") == "\"latte, \"\"scan\"\"\"");
  CHECK(text::escape_csv("plain") == "plain");
}

TEST_CASE("Markdown and LaTeX have every panel with its settings", "[reports]") {
  CHECK_THAT(reports::markdown_tables(test::fixture_result()),
             Catch::Contains("**kernel: time of forward (B=1, H=4, D=32") &&
                 Catch::Contains("| softmax | 162 µs ±0.8 % |") &&
                 Catch::Contains("out\\_of\\_memory: wanted 3.00 GiB"));
  CHECK_THAT(reports::latex_tables(test::fixture_result()),
             Catch::Contains("\\begin{tabular}{lrrrrrr}") && Catch::Contains("out\\_of\\_memory") &&
                 !Catch::Contains(" % "));
}

TEST_CASE("the page's facts have units, and its head says where a run was interrupted",
          "[reports]") {
  CHECK(reports::ceiling_text("fma_float32_flops_per_second", 1.1e11) == "110 GFLOP/s");
  CHECK(reports::ceiling_text("bandwidth_l1_bytes_per_second", 1024.0 * 1024 * 1024) ==
        "1.00 GiB/s");
  CHECK(reports::ceiling_text("exp_float32_per_second", 1.2e9) == "1.20 G/s");
  CHECK(reports::ceiling_text("capacity_l1_bytes", 49152) == "48.0 KiB");
  Result result = test::fixture_result();
  CHECK_THAT(reports::header_html(result, ""), !Catch::Contains("not complete"));
  result.run.state = "interrupted";
  CHECK_THAT(reports::header_html(result, ""), Catch::Contains("not complete: interrupted"));
}
