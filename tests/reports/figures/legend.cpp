#include "reports/figures/legend.hpp"

#include <algorithm>

#include "core/result/document.hpp"
#include "reports/figures/figure.hpp"
#include "tests/reports/figures/spec_parts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench;
using Json = nlohmann::json;

TEST_CASE("words for what is not drawn name how its cells ended", "[reports]") {
  std::vector<result::CellRecord> cells(3);
  cells[0].status = result::Status::ok;
  cells[1].status = result::Status::error;
  cells[2].status = result::Status::timeout;
  result::Panel panel;
  panel.series = {"a", "b", "c"};
  panel.cells = {
      {&cells[0], "a", {}}, {&cells[1], "b", {}}, {&cells[2], "b", {}}, {&cells[0], "c", {}}};
  CHECK(reports::not_drawn_words(panel, {"a", "b", "c"}).empty());
  CHECK(reports::not_drawn_words(panel, {"a"}) ==
        " Not drawn, for want of a number: b (error, timeout), c.");
  CHECK(reports::with_series(panel, {"a", "c"}).series == std::vector<std::string>{"a", "c"});
  CHECK(reports::with_series(panel, {"a"}).cells.size() == 4);
}

TEST_CASE("a series without a mark has no place in a legend, and is told of", "[reports]") {
  const std::vector<std::string> order{"softmax",           "flash",  "latte, scan",
                                       "latte, vectorised", "linear", "window"};
  const auto drawn_where_linear_is = [&](const char* status) {
    Json result = result::read_result(test::source_folder() + "/tests/reports/fixture.json");
    for (Json& cell : result["attnbench"]["cells"]) {
      if (cell["label"] == "linear") cell["status"] = status;
    }
    return reports::draw("time", test::panels(result)[0], order, {}).at(0);
  };
  const auto in_legend = [](const reports::Figure& figure) {
    const Json domain = test::unit_of(figure.spec)["encoding"]["color"]["scale"]["domain"];
    for (const Json& layer : test::layers_of(figure.spec)) {
      if (!layer["encoding"].contains("shape")) continue;
      CHECK(layer["encoding"]["shape"]["scale"]["domain"] == domain);
    }
    return std::find(domain.begin(), domain.end(), "linear") != domain.end();
  };
  CHECK(in_legend(drawn_where_linear_is("ok")));
  const auto without = drawn_where_linear_is("unsupported");
  CHECK_FALSE(in_legend(without));
  CHECK_THAT(without.caption, Catch::Contains("for want of a number: linear (unsupported)."));
  // What crashed has a mark at the upper edge.
  const auto crashed = drawn_where_linear_is("crashed");
  CHECK(in_legend(crashed));
  CHECK_THAT(crashed.caption, !Catch::Contains("for want of a number"));
}
