#include "reports/training.hpp"

#include "reports/training_frame.hpp"
#include "tests/harness/result/training_cells.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using attnbench::test::diverged_cell;
using attnbench::test::training_cell;
using attnbench::test::trainings;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

Json some_trainings() {
  Json window = training_cell("window", 0.003, 1, 0.4, 0.41);
  window["training"]["reach"] = 0.39;
  return trainings({training_cell("softmax", 0.001, 1, 0.9, 0.91),
                    training_cell("softmax", 0.003, 1, 0.99, 0.98),
                    training_cell("softmax", 0.003, 2, 0.97, 0.94), window,
                    training_cell("latte", 0.003, 1, 0.7, 0.72), diverged_cell("latte", 0.01, 1)});
}

const std::vector<std::string> order{"softmax", "window", "latte"};

std::vector<Json> rows_of(const reports::Figure& figure, const std::string& kind) {
  std::vector<Json> rows;
  for (const Json& row : figure.spec["data"]["values"]) {
    if (row["kind"] == kind) rows.push_back(row);
  }
  return rows;
}

}  // namespace

TEST_CASE("figures of trainings show every seed at the chosen learning rate", "[training]") {
  const Json result = some_trainings();
  const auto panel = result::panels(result).at(0);
  const auto accuracy = reports::accuracy_figure(panel, order);
  REQUIRE(accuracy.has_value());
  const auto dots = rows_of(*accuracy, "dot");
  REQUIRE(dots.size() == 4);  // two seeds of softmax, one of each other
  CHECK(dots[0]["y"] == 0.98);
  CHECK(dots[0]["rate"] == "0.003");
  CHECK(dots[1]["seed"] == "2");
  CHECK(dots[0]["x"] == "softmax");
  CHECK(rows_of(*accuracy, "mean").empty());
  REQUIRE(rows_of(*accuracy, "reach").size() == 1);
  CHECK(rows_of(*accuracy, "reach")[0]["y"] == 0.39);
  CHECK_THAT(accuracy->caption, Contains("1 training did not end well"));
  CHECK_THAT(accuracy->spec.dump(), Contains("guessing among the sequence's values"));
}

TEST_CASE("accuracy over state has a front of what nothing betters", "[training]") {
  const Json result = some_trainings();
  const auto figure = reports::accuracy_over_state_figure(result::panels(result).at(0), order);
  REQUIRE(figure.has_value());
  const auto front = rows_of(*figure, "front");
  REQUIRE(front.size() == 2);
  CHECK(front[0]["x"] == 16);  // latte, not the window of as many bytes
  CHECK(front[0]["y"].get<double>() == Approx(0.72));
  CHECK(front[1]["x"] == 32);
  CHECK(front[1]["y"].get<double>() == Approx(0.96));
}

TEST_CASE("the curve over learning rates stands beside its maximum", "[training]") {
  const Json result = some_trainings();
  const auto figure = reports::accuracy_over_rate_figure(result::panels(result).at(0), order);
  REQUIRE(figure.has_value());
  CHECK(rows_of(*figure, "dot").size() == 5);
  const auto means = rows_of(*figure, "mean");
  REQUIRE(means.size() == 4);
  CHECK(means[1]["y"].get<double>() == Approx(0.98));
  CHECK(figure->spec["encoding"]["x"]["scale"]["type"] == "log");
}

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

TEST_CASE("an axis of words has dots and their own chance, and no lines", "[training]") {
  Json easy = training_cell("a", 0.1, 1, 0.5, 0.5, {{"exercise", "recall"}});
  Json hard = training_cell("a", 0.1, 1, 0.4, 0.3, {{"exercise", "copying"}});
  hard["training"]["chance"] = 0.1;
  Json result = trainings({easy, hard});
  result["attnbench"]["suite"]["tasks"]["mqar"]["axis"] = "exercise";
  const auto figure = reports::accuracy_figure(result::panels(result).at(0), {"a"});
  REQUIRE(figure.has_value());
  CHECK(rows_of(*figure, "dot").size() == 2);
  CHECK(rows_of(*figure, "mean").empty());
  const auto chances = rows_of(*figure, "chance");
  REQUIRE(chances.size() == 2);
  CHECK(chances[0]["x"] == "copying");
  CHECK(chances[0]["y"] == 0.1);
  CHECK(figure->spec["encoding"]["x"]["type"] == "ordinal");
}

TEST_CASE("along an axis the means are joined, and without trainings there is nothing",
          "[training]") {
  const Json result = trainings({training_cell("a", 0.1, 1, 0.5, 0.5, {{"length", 64}}),
                                 training_cell("a", 0.1, 1, 0.4, 0.4, {{"length", 128}})});
  const auto figure = reports::accuracy_figure(result::panels(result).at(0), order);
  REQUIRE(figure.has_value());
  CHECK(rows_of(*figure, "mean").size() == 2);
  CHECK(figure->spec["encoding"]["x"]["title"] == "length T (tokens)");
  const Json failed = trainings({diverged_cell("a", 0.1, 1)});
  const auto panel = result::panels(failed).at(0);
  for (const char* name : {"accuracy", "accuracy_over_state", "accuracy_over_learning_rate",
                           "learning_curves", "loss_curves", "accuracy_by_look_back"}) {
    CHECK(reports::draw(name, panel, order, {}).empty());
  }
}
