#include "reports/training/expense.hpp"

#include "tests/reports/tables/training_cells.hpp"
#include "tests/reports/training/rows_of.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using attnbench::test::rows_of;
using attnbench::test::training_cell;
using attnbench::test::trainings;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

Json cost_cell(const std::string& label, const Json& options, double seconds, double bytes) {
  return {{"id", "cost" + label + options.dump()},
          {"label", label},
          {"task", "kernel"},
          {"task_label", "cost"},
          {"mechanism", label},
          {"implementation", "fused"},
          {"settings", {{"length", 64}, {"batch", 32}, {"scope", "layer"}}},
          {"options", options},
          {"status", "ok"},
          {"primary", "forward+backward"},
          {"timing",
           {{"forward+backward",
             {{"median_seconds", seconds},
              {"low_seconds", seconds},
              {"high_seconds", seconds},
              {"interval", "range"},
              {"rounds", Json::array()}}}}},
          {"memory", {{"peak_bytes", bytes}}}};
}

/// Latte at two sizes and softmax, trained and timed; linear trained alone.
std::vector<Json> some_cells() {
  const Json few = {{"latents_total", 16}};
  const Json many = {{"latents_total", 64}};
  std::vector<Json> cells;
  for (const auto& [label, options, accuracy] :
       {std::tuple{"softmax", Json::object(), 0.99}, std::tuple{"latte", few, 0.6},
        std::tuple{"latte", many, 0.8}, std::tuple{"linear", Json::object(), 0.7}}) {
    Json cell = training_cell(label, 0.01, 1, accuracy, accuracy, {{"length", 64}});
    cell["options"] = options;
    cells.push_back(cell);
  }
  cells.push_back(cost_cell("softmax", Json::object(), 5e-3, 1 << 22));
  cells.push_back(cost_cell("latte", few, 2e-3, 1 << 20));
  cells.push_back(cost_cell("latte", many, 6e-3, 1 << 21));
  return cells;
}

std::vector<reports::Figure> figures_of(const std::vector<Json>& cells, reports::Expense expense) {
  const Json result = trainings(cells);
  const auto panels = result::panels(result);
  std::vector<const result::Panel*> all;
  std::vector<const result::Panel*> trained;
  for (const auto& panel : panels) {
    all.push_back(&panel);
    if (panel.task != "kernel") trained.push_back(&panel);
  }
  return reports::accuracy_over_expense_figures(expense, trained, all,
                                                {"softmax", "latte", "linear"});
}

}  // namespace

TEST_CASE("accuracy stands over the time that another task measured", "[training]") {
  const auto figures = figures_of(some_cells(), reports::Expense::time);
  REQUIRE(figures.size() == 1);
  const auto dots = rows_of(figures[0], "dot");
  REQUIRE(dots.size() == 3);
  CHECK(dots[0]["series"] == "softmax");
  CHECK(dots[0]["x"].get<double>() == Approx(5));
  CHECK(dots[1]["x"].get<double>() == Approx(2));
  CHECK(dots[1]["y"] == 0.6);
  CHECK(dots[2]["x"].get<double>() == Approx(6));
  const auto front = rows_of(figures[0], "front");
  REQUIRE(front.size() == 2);  // Latte's larger size is slower than softmax, and no better
  CHECK(front[1]["y"] == 0.99);
  CHECK(figures[0].spec["encoding"]["x"]["title"] ==
        "time of one forward+backward of a layer, B=32 (ms)");
  CHECK_THAT(figures[0].caption, Contains("not here: 1."));
}

TEST_CASE("accuracy stands over the memory that another task measured", "[training]") {
  const auto figures = figures_of(some_cells(), reports::Expense::memory);
  REQUIRE(figures.size() == 1);
  const auto dots = rows_of(figures[0], "dot");
  REQUIRE(dots.size() == 3);
  CHECK(dots[0]["x"].get<double>() == Approx(4));
  CHECK(dots[1]["x"].get<double>() == Approx(1));
}

TEST_CASE("what was trained in bfloat16 costs what was timed in bfloat16", "[training]") {
  std::vector<Json> cells = some_cells();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i]["settings"]["dtype"] = "float32";
    if (i < 4) cells[i]["settings"]["autocast"] = "bfloat16";
  }
  CHECK(figures_of(cells, reports::Expense::time).empty());
  cells[4]["settings"]["dtype"] = "bfloat16";
  const auto figures = figures_of(cells, reports::Expense::time);
  REQUIRE(figures.size() == 1);
  CHECK(rows_of(figures[0], "dot").size() == 1);
  for (std::size_t i = 0; i < 4; ++i) cells[i]["settings"]["autocast"] = "off";
  CHECK(rows_of(figures_of(cells, reports::Expense::time).at(0), "dot").size() == 2);
}

TEST_CASE("a cost at another size, failed, or of several passes is no cost of a training",
          "[training]") {
  std::vector<Json> cells = some_cells();
  cells[4]["settings"]["length"] = 128;
  cells[5]["status"] = "wrong";
  Json other = cells[6];
  other["settings"]["pass"] = "forward";
  cells.push_back(other);
  CHECK(figures_of(cells, reports::Expense::time).empty());
}

TEST_CASE("a disturbed cost stands on no front, and makes way for no other pass", "[training]") {
  std::vector<Json> cells = some_cells();
  cells[4]["status"] = "disturbed";
  const auto figures = figures_of(cells, reports::Expense::time);
  REQUIRE(figures.size() == 1);
  CHECK(rows_of(figures[0], "dot").size() == 2);
  for (const Json& row : rows_of(figures[0], "dot")) CHECK(row["series"] != "softmax");
  CHECK_THAT(figures[0].caption, Contains("not here: 2 (disturbed by other programs: 1)."));
  Json other = cells[4];
  other["status"] = "ok";
  other["settings"]["pass"] = "forward";
  cells.push_back(other);
  CHECK(rows_of(figures_of(cells, reports::Expense::time).at(0), "dot").size() == 2);
}
