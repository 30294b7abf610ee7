#include "reports/tables/grid.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace attnbench;
using Json = nlohmann::json;
using Row = std::pair<std::string, std::vector<std::string>>;

namespace {

/// Two places on an axis and a series that has none on it.
struct Places {
  Json low = 1024;
  Json high = 4096;
  reports::Panel panel;
  std::vector<reports::GridEntry> entries;

  explicit Places(const std::string& axis) {
    panel.axis = axis;
    panel.series = {"latte", "softmax", "failed"};
    panel.cells = {{nullptr, "latte", low}, {nullptr, "latte", high}, {nullptr, "softmax", {}}};
    entries = {{"latte", low, "a"}, {"softmax", {}, "c"}, {"latte", high, "b"}};
  }
};

}  // namespace

TEST_CASE("a grid has the axis across, and a column for what has no place on it", "[result]") {
  const Places places("length");
  const reports::Grid grid = reports::laid_out(places.panel, "title", places.entries);
  CHECK(grid.title == "title");
  CHECK(grid.columns == std::vector<std::string>{"1024", "4096", "any"});
  REQUIRE(grid.rows.size() == 3);
  CHECK(grid.rows[0] == Row{"latte", {"a", "b", ""}});
  CHECK(grid.rows[1] == Row{"softmax", {"", "", "c"}});
  CHECK(grid.rows[2] == Row{"failed", {"", "", ""}});
}

TEST_CASE("along the bytes of states a grid has a row for each size", "[result]") {
  const Places places("state_bytes");
  const reports::Grid grid = reports::laid_out(places.panel, "title", places.entries);
  CHECK(grid.columns == std::vector<std::string>{""});
  REQUIRE(grid.rows.size() == 4);
  CHECK(grid.rows[0] == Row{"latte, 1.00 KiB", {"a"}});
  CHECK(grid.rows[1] == Row{"latte, 4.00 KiB", {"b"}});
  CHECK(grid.rows[2] == Row{"softmax", {"c"}});
  CHECK(grid.rows[3] == Row{"failed", {""}});
}
