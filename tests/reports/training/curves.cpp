#include "reports/training/curves.hpp"

#include "reports/training/accuracy.hpp"
#include "tests/reports/training/some_trainings.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

TEST_CASE("curves have a point for each epoch, bins are powers of two", "[training]") {
  const Json result = some_trainings();
  const auto panel = result::panels(result).at(0);
  const auto curves = reports::learning_curves_figure(panel, order);
  REQUIRE(curves.has_value());
  CHECK(rows_of(*curves, "dot").size() == 16);
  const auto back = reports::look_back_figure(panel, order);
  REQUIRE(back.has_value());
  const auto bins = rows_of(*back, "dot");
  REQUIRE(bins.size() == 6);
  CHECK(bins[0]["x"] == 4);  // distances 3 and 4
  CHECK(bins[0]["y"].get<double>() == Approx(250.0 / 400));
  CHECK(bins[1]["x"] == 32);
  CHECK(bins[1]["y"].get<double>() == Approx(0.1));
}

TEST_CASE("loss falls over steps on a logarithmic axis", "[training]") {
  Json result = some_trainings();
  const auto figure = reports::loss_curves_figure(result::panels(result).at(0), order);
  REQUIRE(figure.has_value());
  const auto dots = rows_of(*figure, "dot");
  REQUIRE(dots.size() == 16);
  CHECK(dots[1]["x"] == 20);
  CHECK(dots[1]["y"] == 1.0);
  CHECK(figure->spec["layer"][0]["encoding"]["y"]["scale"]["type"] == "log");
  for (Json& cell : result["attnbench"]["cells"]) {
    if (cell.contains("training")) cell["training"]["curve"][3]["loss"] = 0.0;
  }
  const auto exact = reports::loss_curves_figure(result::panels(result).at(0), order);
  CHECK(rows_of(*exact, "dot").size() == 12);  // no logarithm of 0
}

TEST_CASE("each data set has curves of its own, each width or size of an option has not",
          "[training]") {
  std::vector<Json> cells;
  for (const char* exercise : {"recall", "copying"}) {
    for (const char* label : {"latte", "softmax"}) {
      for (const double rate : {0.01, 0.1}) {
        cells.push_back(training_cell(label, rate, 1, 0.5 + rate, 0.5, {{"exercise", exercise}}));
      }
    }
  }
  Json result = trainings(cells);
  result["attnbench"]["suite"]["tasks"]["mqar"]["axis"] = "exercise";
  const auto panel = result::panels(result).at(0);
  REQUIRE(panel.cells.size() == 8);
  for (const char* name :
       {"learning_curves", "loss_curves", "accuracy_over_learning_rate", "accuracy_by_look_back"}) {
    INFO(name);
    const auto figures = reports::draw(name, panel, order, {});
    REQUIRE(figures.size() == 2);
    CHECK_THAT(figures[0].subtitle, Contains("exercise=recall"));
    CHECK_THAT(figures[1].subtitle, Contains("exercise=copying"));
    CHECK(figures[0].name == std::string("mqar_") + name + "_recall");
    CHECK(figures[1].name == std::string("mqar_") + name + "_copying");
  }
  const auto curves = reports::draw("learning_curves", panel, order, {});
  for (const auto& figure : curves) {
    const auto dots = rows_of(figure, "dot");
    REQUIRE(dots.size() == 2 * 4);  // of the better learning rate, four epochs
    for (const Json& dot : dots) {
      CHECK(dot["rate"] == "0.1");
      CHECK_THAT(dot["id"].get<std::string>(), Contains(&figure == &curves[0] ? "recall" : "copy"));
    }
  }
  // All of them are together where the axis is the model's.
  for (Json& cell : result["attnbench"]["cells"]) {
    cell["settings"]["width"] = cell["settings"]["exercise"] == "recall" ? 32 : 64;
    cell["settings"].erase("exercise");
  }
  result["attnbench"]["suite"]["tasks"]["mqar"]["axis"] = "width";
  const auto by_width = result::panels(result).at(0);
  REQUIRE(by_width.axis == "width");
  const auto together = reports::draw("learning_curves", by_width, order, {});
  REQUIRE(together.size() == 1);
  CHECK(rows_of(together[0], "dot").size() == 4 * 4);
}
