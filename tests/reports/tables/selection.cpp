#include "reports/tables/selection.hpp"

#include <functional>

#include "core/result/result_check.hpp"
#include "reports/tables/tables.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using namespace attnbench::result;
using Catch::Matchers::Contains;
using test::diverged_cell;
using test::training_cell;

namespace {

std::vector<reports::Selection> selected(std::vector<CellRecord> cells) {
  return reports::selections(test::first_panel(test::result_of(std::move(cells))));
}

std::string table_of(std::vector<CellRecord> cells) {
  return reports::table(test::result_of(std::move(cells)), {200, text::Letters::ascii});
}

}  // namespace

TEST_CASE("validation over seeds chooses the learning rate, not the test", "[selection]") {
  const auto found = selected(
      {training_cell("latte", 0.001, 1, 0.70, 0.99), training_cell("latte", 0.001, 2, 0.70, 0.99),
       training_cell("latte", 0.003, 1, 0.90, 0.80), training_cell("latte", 0.003, 2, 0.80, 0.84),
       training_cell("latte", 0.010, 1, 0.99, 0.50), training_cell("latte", 0.010, 2, 0.40, 0.50)});
  REQUIRE(found.size() == 1);
  CHECK(found[0].choice().learning_rate == 0.003);
  CHECK(found[0].choice().test == Approx(0.82));
  CHECK(found[0].choice().validation == Approx(0.85));
  CHECK(found[0].choice().cells.size() == 2);
  CHECK_FALSE(found[0].at_edge);
  CHECK(found[0].converged);
  CHECK(found[0].rates[found[0].best_test].learning_rate == 0.001);
}

TEST_CASE("a choice at the edge is said to be", "[selection]") {
  const auto edge = [](const std::vector<std::pair<double, double>>& rates) {
    std::vector<CellRecord> cells;
    for (const auto& [rate, validation] : rates) {
      cells.push_back(training_cell("a", rate, 1, validation, 0.5));
    }
    return selected(cells)[0].at_edge;
  };
  CHECK(edge({{0.1, 0.5}, {0.2, 0.6}}));
  CHECK(edge({{0.1, 0.7}, {0.2, 0.6}}));
  CHECK(edge({{0.1, 0.7}}));
  CHECK_FALSE(edge({{0.1, 1.0}, {0.2, 0.6}}));
  CHECK_FALSE(edge({{0.3, 0.6}, {0.1, 0.6}, {0.2, 0.7}}));
}

TEST_CASE("a rate at which a seed failed speaks only where none is better", "[selection]") {
  const auto found =
      selected({training_cell("a", 0.1, 1, 0.5, 0.5), training_cell("a", 0.1, 2, 0.5, 0.5),
                training_cell("a", 0.2, 1, 0.9, 0.9), diverged_cell("a", 0.2, 2),
                training_cell("b", 0.2, 1, 0.9, 0.9), diverged_cell("b", 0.2, 2),
                diverged_cell("b", 0.3, 1), diverged_cell("c", 0.2, 1)});
  REQUIRE(found.size() == 2);  // nothing of c ended well
  CHECK(found[0].choice().learning_rate == 0.1);
  CHECK(found[0].rates[1].failed == 1);
  CHECK(found[1].series == "b");
  CHECK(found[1].choice().learning_rate == 0.2);
  // Nor is one chosen that was disturbed.
  const auto disturbed = selected({training_cell("a", 0.1, 1, 0.5, 0.5),
                                   training_cell("a", 0.2, 1, 0.9, 0.9).ended(Status::disturbed)});
  CHECK(disturbed.at(0).choice().learning_rate == 0.1);
}

TEST_CASE("learning rates and seeds make no panels and no axis", "[selection]") {
  std::vector<CellRecord> cells;
  for (const int length : {64, 128}) {
    for (const double rate : {0.1, 0.2, 0.3}) {
      cells.push_back(training_cell("a", rate, 1, rate, rate, {{"length", length}}));
    }
  }
  const auto all = test::panels(test::result_of(cells));
  REQUIRE(all.size() == 1);
  CHECK(all[0].axis == "length");
  const auto found = reports::selections(all[0]);
  REQUIRE(found.size() == 2);
  CHECK(*found[1].x == 128);
  CHECK(found[1].choice().learning_rate == 0.3);
  // Not even where a suite names it as the axis.
  cells.resize(3);
  const auto declared = test::panels(test::result_of(cells, "learning_rate"));
  REQUIRE(declared.size() == 1);
  CHECK(declared[0].axis.empty());
  CHECK_FALSE(declared[0].cells[1].x);
}

TEST_CASE("a table of trainings shows the choice and what is to be known of it", "[selection]") {
  const std::string text = table_of(
      {training_cell("latte", 0.001, 1, 0.4, 0.41), training_cell("latte", 0.003, 1, 0.45, 0.43),
       training_cell("softmax", 0.001, 1, 0.99, 0.98),
       training_cell("softmax", 0.001, 2, 0.97, 0.94), training_cell("softmax", 0.003, 1, 0.9, 0.9),
       training_cell("softmax", 0.003, 2, 0.9, 0.9), diverged_cell("softmax", 0.01, 1)});
  for (const char* part :
       {"0.960 (0.940 to 0.980)", "0.430, still growing", "0.003 of 2, at the edge", "16.0 KiB",
        "softmax at length 64: error: the loss is not a finite number"}) {
    CHECK_THAT(text, Contains(part));
  }
  CHECK_THAT(text, !Contains("best test"));  // validation chose the same
  CHECK_THAT(table_of({training_cell("latte", 0.001, 1, 0.4, 0.61),
                       training_cell("latte", 0.003, 1, 0.45, 0.43)}),
             Contains("best test of all learning rates") && Contains("0.610 at 0.001") &&
                 Contains("0.430, still growing"));
}

TEST_CASE("a table says which trainings never left chance", "[selection]") {
  const auto unlearned = [](int seed) {
    test::CellBuilder cell = training_cell("latte", 0.001, seed, 0.006, 0.005);
    cell.training->converged = true;
    return cell;
  };
  CHECK_THAT(table_of({unlearned(1)}), Contains("0.005, at chance"));
  const std::string some =
      table_of({unlearned(1), training_cell("latte", 0.001, 2, 0.9, 0.9), unlearned(3)});
  CHECK_THAT(some, Contains(", 2 of 3 at chance"));
}

TEST_CASE("malformed trainings are refused at the door", "[selection]") {
  const Json whole = test::result_of({training_cell("latte", 0.001, 1, 0.4, 0.41)});
  result::check_form(whole, "here");
  const auto refused = [&](const char* place, const Json& value, const char* pointer) {
    Json spoiled = whole;
    const Json::json_pointer at("/attnbench/cells/0" + std::string(place));
    if (value.is_null()) {
      spoiled[at.parent_pointer()].erase(at.back());
    } else {
      spoiled[at] = value;
    }
    INFO(place);
    CHECK_THROWS_WITH(result::check_form(spoiled, "here"), Contains(pointer));
  };
  refused("/training", 3, "/cells/0/training");
  refused("/training/curve", "steep", "/training/curve");
  refused("/training/curve/1/loss", {}, "/curve/1/loss");
  refused("/training/test/0/accuracy", "high", "/test/0/accuracy");
  refused("/training/look_back/right", {1}, "/look_back/right");
  refused("/training/look_back/distances/0", "far", "/look_back/distances");
  refused("/training/reach_line", {{"keys", {1}}}, "/reach_line/");
  refused("/training/reach_line", {{"keys", {1, 2}}, {"state_bytes", {8, 16}}, {"reach", {0.5}}},
          "/reach_line/reach");
  refused("/metrics", {}, "/metrics");
  refused("/settings/learning_rate", {}, "/settings/learning_rate");
}

TEST_CASE("the speed of a training that was disturbed is marked, its accuracy is not",
          "[selection]") {
  auto cell = training_cell("a", 0.1, 1, 0.5, 0.5);
  cell.metrics["examples_per_second"] = 1234.0;
  CHECK_THAT(table_of({cell}), Contains("1234") && !Contains("disturbed"));
  cell.training->disturbed = true;
  CHECK_THAT(table_of({cell}),
             Contains("1234 disturbed") && Contains("0.500") && !Contains("0.500 disturbed"));
}

TEST_CASE("the least mean validation loss chooses the learning rate of a language model",
          "[selection]") {
  using attnbench::test::text_cell;
  const reports::Panel panel = test::first_panel(test::result_of(
      {text_cell("latte", 0.001, 1, 2.9, 2.5, 2.8), text_cell("latte", 0.003, 1, 2.6, 2.7, 2.8),
       text_cell("latte", 0.003, 2, 2.4, 2.9, 3.0), text_cell("latte", 0.010, 1, 3.1, 3.0, 3.2),
       text_cell("window", 0.003, 1, 2.2, 2.1, 2.1)}));
  const auto found = reports::selections(panel);
  REQUIRE(found.size() == 2);
  CHECK(found[0].choice().learning_rate == 0.003);
  CHECK(found[0].choice().validation == Approx(2.5));
  CHECK(found[0].choice().test == Approx(2.8));
  CHECK_FALSE(found[0].at_edge);
  CHECK(found[0].rates[found[0].best_test].learning_rate == 0.001);
  const std::vector<reports::Grid> grids = reports::training_grids(panel);
  CHECK(grids[0].title == "bits per byte on the test, mean over seeds (range)");
  CHECK_THAT(grids[0].note,
             Contains("least mean validation loss") && Contains("counts after two bytes 2.700"));
  CHECK_THAT(grids[0].rows[0].second[0], Contains("2.800 (2.700 to 2.900)"));
  CHECK(grids[1].columns == std::vector<std::string>{"1x", "2x"});
  REQUIRE(grids[1].rows.size() == 2);
  CHECK(grids[1].rows[0].second == std::vector<std::string>{"2.800", "2.900"});
  CHECK(grids[1].rows[1].second == std::vector<std::string>{"2.100", "2.100"});
  for (const reports::Grid& grid : grids) CHECK_THAT(grid.title + grid.note, !Contains("accuracy"));
}
