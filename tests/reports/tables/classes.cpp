#include "reports/tables/classes.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
using test::class_cell;

namespace {

reports::Grid grid_of(std::vector<result::CellRecord> cells) {
  const reports::Panel panel = test::first_panel(test::result_of(std::move(cells)));
  return reports::class_grid(panel, reports::selections(panel));
}

}  // namespace

TEST_CASE("classes: each rule of selection has its accuracy, means over seeds", "[classes]") {
  const reports::Grid grid =
      grid_of({class_cell("latte", 1, 0.6, 0.8), class_cell("latte", 2, 0.7, 0.9),
               class_cell("linear", 1, 0.5, 0.53)});
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
  auto cell = class_cell("latte", 1, 0.6, 0.8);
  cell.training->selection->best_test = result::Selected{20, 0.7, 0.85, {}, {}};
  CHECK(grid_of({cell}).rows[0].second[2] == "0.850");
  // One seed without it leaves no mean, and one that failed has learned nothing.
  CHECK(grid_of({cell, class_cell("latte", 2, 0.6, 0.8)}).rows[0].second[2] == "-");
  CHECK(grid_of({cell, test::diverged_cell("latte", 0.1, 2)}).rows[0].second[4] == "1 of 2");
}

TEST_CASE("classes: steps above 55 % are told of two even classes alone", "[classes]") {
  auto three = class_cell("latte", 1, 0.6, 0.8);
  three.training->confusion = {{9, 1, 0}, {2, 8, 0}, {0, 0, 10}};
  CHECK(grid_of({three}).columns.size() == 5);
  auto uneven = class_cell("latte", 1, 0.6, 0.8);
  uneven.training->guess = 0.7;
  CHECK(grid_of({uneven}).columns.size() == 5);
}

TEST_CASE("classes: trainings that classify nothing have no such table", "[classes]") {
  const auto titles = [](const result::CellRecord& cell) {
    std::string all;
    for (const auto& grid : reports::training_grids(test::first_panel(test::result_of({cell})))) {
      all += grid.title + "; ";
    }
    return all;
  };
  const char* const title = "rule that selects the weights";
  CHECK_THAT(titles(test::training_cell("latte", 0.1, 1, 0.5, 0.5)), !Contains(title));
  CHECK_THAT(titles(class_cell("latte", 1, 0.5, 0.5)), Contains(title));
}
