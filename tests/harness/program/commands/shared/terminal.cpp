#include "harness/program/commands/shared/terminal.hpp"

#include <algorithm>
#include <sstream>

#include "core/text/format.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::commands;

namespace {

std::string printed(const std::vector<TableRow>& rows, std::size_t width) {
  std::ostringstream out;
  print_columns(out, rows, "  ", width);
  return out.str();
}

const std::vector<TableRow> options{
    {"option", "default", "meaning"},
    {"latents_total", "0", "latents of all heads together, the papers' L; 0 = as many as in each"},
    {"chunk", "64", "tokens that are taken together"}};

}  // namespace

TEST_CASE("columns: aligned, one line a row, where they fit or there is no terminal", "[columns]") {
  const std::string wide = printed(options, 200);
  CHECK(wide == printed(options, whole_lines));
  CHECK(std::count(wide.begin(), wide.end(), '\n') == 3);
  CHECK_THAT(wide, Catch::Contains("  chunk               64  tokens that are taken together\n"));
}

TEST_CASE("columns: what does not fit is a paragraph beside those that do", "[columns]") {
  CHECK(printed(options, 62) ==
        "  option         default  meaning\n"
        "  latents_total        0  latents of all heads together, the\n"
        "                          papers' L; 0 = as many as in each\n"
        "  chunk               64  tokens that are taken together\n");
}

TEST_CASE("columns: several that do not fit are paragraphs one below the other", "[columns]") {
  const std::vector<TableRow> rows{
      {"mqar", "Recall of values by their keys, after training", "a, b, c"}, {"copy", "", "d"}};
  CHECK(printed(rows, 40) ==
        "  mqar  Recall of values by their keys,\n"
        "        after training\n"
        "        a, b, c\n"
        "  copy  d\n");
}

TEST_CASE("columns: no line is wider than the terminal while words allow it", "[columns]") {
  for (const std::size_t width : {30u, 40u, 60u, 80u}) {
    std::istringstream lines(printed(options, width));
    for (std::string line; std::getline(lines, line);) {
      INFO(width << ": " << line);
      CHECK(text::display_width(line) <= width);
    }
  }
}
