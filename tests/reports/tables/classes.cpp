#include "reports/tables/classes.hpp"

#include "tests/reports/tables/training_cells.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench;
using namespace attnbench::result;
using attnbench::test::class_cell;
using attnbench::test::diverged_cell;
using attnbench::test::training_cell;
using attnbench::test::trainings;
using Catch::Matchers::Contains;

namespace {

Grid grid_of(const Json& result) {
  const Panel panel = test::panels(result).at(0);
  return class_grid(panel, selections(panel));
}

}  // namespace

TEST_CASE("classes: each rule of selection has its accuracy, means over seeds", "[classes]") {
  const Grid grid =
      grid_of(trainings({class_cell("latte", 1, 0.6, 0.8), class_cell("latte", 2, 0.7, 0.9),
                         class_cell("linear", 1, 0.5, 0.53)}));
  CHECK(grid.columns == std::vector<std::string>{"last", "best validation", "best test",
                                                 "most frequent class", "learned",
                                                 "step above 55 %"});
  REQUIRE(grid.rows.size() == 2);
  CHECK(grid.rows[0].first == "latte");
  // Curves grow to the validation accuracy in four evaluations of ten steps each.
  CHECK(grid.rows[0].second ==
        std::vector<std::string>{"0.650", "0.850", "-", "0.520", "2 of 2", "30 (2 of 2)"});
  CHECK(grid.rows[1].second ==
        std::vector<std::string>{"0.500", "0.530", "-", "0.520", "0 of 1", "never"});
  CHECK_THAT(grid.note, Contains("best validation") && Contains("0.02 above"));
}

TEST_CASE("classes: the best test is there where each evaluation scored it", "[classes]") {
  Json cell = class_cell("latte", 1, 0.6, 0.8);
  cell["training"]["selection"]["best_test"] = {
      {"step", 20}, {"validation_accuracy", 0.7}, {"test_accuracy", 0.85}};
  CHECK(grid_of(trainings({cell})).rows[0].second[2] == "0.850");
  // One seed without it leaves no mean.
  CHECK(grid_of(trainings({cell, class_cell("latte", 2, 0.6, 0.8)})).rows[0].second[2] == "-");
}

TEST_CASE("classes: a seed that failed has learned nothing", "[classes]") {
  const Grid grid =
      grid_of(trainings({class_cell("latte", 1, 0.6, 0.8), diverged_cell("latte", 0.1, 2)}));
  CHECK(grid.rows[0].second[4] == "1 of 2");
}

TEST_CASE("classes: steps above 55 % are told of two even classes alone", "[classes]") {
  Json three = class_cell("latte", 1, 0.6, 0.8);
  three["training"]["confusion"] = {{9, 1, 0}, {2, 8, 0}, {0, 0, 10}};
  CHECK(grid_of(trainings({three})).columns.size() == 5);
  Json uneven = class_cell("latte", 1, 0.6, 0.8);
  uneven["training"]["guess"] = 0.7;
  CHECK(grid_of(trainings({uneven})).columns.size() == 5);
}

TEST_CASE("classes: trainings that classify nothing have no such table", "[classes]") {
  CHECK(grid_of(trainings({training_cell("latte", 0.1, 1, 0.5, 0.5)})).rows.empty());
  const auto titles = [](const Json& cell) {
    std::string all;
    for (const Grid& grid : training_grids(test::panels(trainings({cell})).at(0))) {
      all += grid.title + "; ";
    }
    return all;
  };
  const char* const title = "rule that selects the weights";
  CHECK_THAT(titles(training_cell("latte", 0.1, 1, 0.5, 0.5)), !Contains(title));
  CHECK_THAT(titles(class_cell("latte", 1, 0.5, 0.5)), Contains(title));
}
