#include "reports/figures/legend.hpp"

#include <algorithm>

#include "reports/draw.hpp"
#include "tests/reports/figures/spec_parts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using Json = nlohmann::json;

TEST_CASE("words for what is not drawn name how its cells ended", "[reports]") {
  std::vector<result::CellRecord> cells(3);
  cells[0].status = Status::ok;
  cells[1].status = Status::error;
  cells[2].status = Status::timeout;
  reports::Panel panel;
  panel.series = {"a", "b", "c"};
  panel.cells = {
      {&cells[0], "a", {}}, {&cells[1], "b", {}}, {&cells[2], "b", {}}, {&cells[0], "c", {}}};
  CHECK(reports::not_drawn_words(panel, {"a", "b", "c"}).empty());
  CHECK(reports::not_drawn_words(panel, {"a"}) ==
        " Not drawn, for want of a number: b (error, timeout), c.");
  CHECK(reports::with_series(panel, {"a", "c"}).cells.size() == 4);
}

TEST_CASE("a series without a mark has no place in a legend, and is told of", "[reports]") {
  const auto drawn_where_linear_is = [&](Status status) {
    result::Result result = test::fixture_result();
    for (result::CellRecord& cell : result.cells) {
      if (cell.label == "linear") cell.status = status;
    }
    return reports::draw("time", test::first_panel(result), test::fixture_palette, {}).at(0);
  };
  const auto in_legend = [](const reports::Figure& figure) {
    const Json domain = test::unit_of(figure.spec)["encoding"]["color"]["scale"]["domain"];
    for (const Json& layer : test::layers_of(figure.spec)) {
      if (!layer["encoding"].contains("shape")) continue;
      CHECK(layer["encoding"]["shape"]["scale"]["domain"] == domain);
    }
    return std::find(domain.begin(), domain.end(), "linear") != domain.end();
  };
  CHECK(in_legend(drawn_where_linear_is(Status::ok)));
  const auto without = drawn_where_linear_is(Status::unsupported);
  CHECK_FALSE(in_legend(without));
  CHECK_THAT(without.caption, Catch::Contains("for want of a number: linear (unsupported)."));
  // What crashed has a mark at the upper edge.
  const auto crashed = drawn_where_linear_is(Status::crashed);
  CHECK(in_legend(crashed));
  CHECK_THAT(crashed.caption, !Catch::Contains("for want of a number"));
}
