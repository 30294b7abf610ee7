#include "reports/training/accuracy.hpp"

#include "reports/figures/spec.hpp"
#include "tests/reports/training/some_trainings.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

TEST_CASE("figures of trainings show every seed at the chosen learning rate", "[training]") {
  const Json result = some_trainings();
  const auto panel = test::panels(result).at(0);
  const auto accuracy = reports::accuracy_figure(panel, order, {});
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

TEST_CASE("names below an axis slope where they have no room side by side", "[training]") {
  const auto angle = [](const Json& result) {
    const auto figure = reports::accuracy_figure(test::panels(result).at(0), order, {});
    return figure->spec["encoding"]["x"]["axis"]["labelAngle"].get<int>();
  };
  CHECK(angle(some_trainings()) == 0);
  CHECK(angle(trainings(
            {training_cell("latte with a convolution and a window", 0.003, 1, 0.9, 0.9),
             training_cell("latte with a recurrence and a window", 0.003, 1, 0.9, 0.9)})) < 0);
}

TEST_CASE("the curve over learning rates stands beside its maximum", "[training]") {
  const Json result = some_trainings();
  const auto figure = reports::accuracy_over_rate_figure(test::panels(result).at(0), order);
  REQUIRE(figure.has_value());
  CHECK(rows_of(*figure, "dot").size() == 5);
  const auto means = rows_of(*figure, "mean");
  REQUIRE(means.size() == 4);
  CHECK(means[1]["y"].get<double>() == Approx(0.98));
  CHECK(figure->spec["encoding"]["x"]["scale"]["type"] == "log");
}

TEST_CASE("an axis of words has dots and their own chance, and no lines", "[training]") {
  Json easy = training_cell("a", 0.1, 1, 0.5, 0.5, {{"exercise", "recall"}});
  Json hard = training_cell("a", 0.1, 1, 0.4, 0.3, {{"exercise", "copying"}});
  hard["training"]["chance"] = 0.1;
  Json result = trainings({easy, hard});
  result["attnbench"]["suite"]["tasks"]["mqar"]["axis"] = "exercise";
  const auto figure = reports::accuracy_figure(test::panels(result).at(0), {"a"}, {});
  REQUIRE(figure.has_value());
  CHECK(rows_of(*figure, "dot").size() == 2);
  CHECK(rows_of(*figure, "mean").empty());
  const auto chances = rows_of(*figure, "chance");
  REQUIRE(chances.size() == 2);
  CHECK(chances[0]["x"] == "copying");
  CHECK(chances[0]["y"] == 0.1);
  CHECK(figure->spec["encoding"]["x"]["type"] == "ordinal");
  CHECK(figure->spec["encoding"]["x"]["sort"] == Json({"recall", "copying"}));  // as planned
  // With one learning rate there was nothing to choose, and there is nothing to show.
  CHECK(
      reports::draw("accuracy_over_learning_rate", test::panels(result).at(0), {"a"}, {}).empty());
}

TEST_CASE("along an axis the means are joined, and without trainings there is nothing",
          "[training]") {
  const Json result = trainings({training_cell("a", 0.1, 1, 0.5, 0.5, {{"length", 64}}),
                                 training_cell("a", 0.1, 1, 0.4, 0.4, {{"length", 128}})});
  const auto figure = reports::accuracy_figure(test::panels(result).at(0), order, {});
  REQUIRE(figure.has_value());
  CHECK(rows_of(*figure, "mean").size() == 2);
  CHECK(figure->spec["encoding"]["x"]["title"] == "length T (tokens)");
  const Json failed = trainings({diverged_cell("a", 0.1, 1)});
  const auto panel = test::panels(failed).at(0);
  for (const char* name :
       {"accuracy", "accuracy_over_state", "accuracy_over_time", "accuracy_over_memory",
        "accuracy_over_learning_rate", "learning_curves", "loss_curves", "accuracy_by_look_back"}) {
    CHECK(reports::draw(name, panel, order, {}).empty());
  }
}

TEST_CASE("a series without a mark is left out of the legend, and the caption names it",
          "[training]") {
  Json luna = diverged_cell("luna", 0.01, 1);
  luna["status"] = "unsupported";
  const Json result =
      trainings({training_cell("softmax", 0.001, 1, 0.9, 0.91), diverged_cell("window", 0.01, 1),
                 diverged_cell("window", 0.1, 1), training_cell("latte", 0.001, 1, 0.7, 0.72),
                 diverged_cell("latte", 0.01, 1), luna});
  const auto panel = test::panels(result).at(0);
  REQUIRE(panel.series == std::vector<std::string>{"softmax", "window", "latte", "luna"});
  for (const char* name : {"accuracy", "accuracy_over_state", "learning_curves", "loss_curves",
                           "accuracy_over_learning_rate", "accuracy_by_look_back"}) {
    INFO(name);
    const auto figures = reports::draw(name, panel, order, {});
    REQUIRE(figures.size() == 1);
    const Json drawn = {"softmax", "latte"};
    CHECK(figures[0].spec["encoding"]["color"]["scale"]["domain"] == drawn);
    for (const Json& layer : figures[0].spec["layer"]) {
      if (!layer.contains("encoding") || !layer["encoding"].contains("shape")) continue;
      CHECK(layer["encoding"]["shape"]["scale"]["domain"] == drawn);
    }
    // As many colours as series, and latte's is its own although the window before it is gone.
    const Json range = figures[0].spec["encoding"]["color"]["scale"]["range"];
    REQUIRE(range.size() == 2);
    const auto all = reports::colour_encoding({"latte"}, order);
    CHECK(range[1] == all["scale"]["range"][0]);
    CHECK_THAT(figures[0].caption, Contains("4 trainings did not end well and are not drawn") &&
                                       Contains("Not drawn, for want of a number: window (error), "
                                                "luna (unsupported)."));
  }
  // Whoever is drawn in part stays, and nobody is told of.
  const auto some = reports::draw("accuracy", test::panels(some_trainings()).at(0), order, {});
  CHECK_THAT(some.at(0).caption, !Contains("want of a number"));
}

TEST_CASE("a published number keeps the name of whom we could not train in the legend",
          "[training]") {
  const TemporaryFolder folder;
  write_file(folder / "x.csv",
             "# source: A paper, Figure 2\nlabel,vocabulary,length,state_bytes,accuracy\n"
             "window,,,8192,0.5\n");
  const Json result =
      trainings({training_cell("softmax", 0.001, 1, 0.9, 0.91), diverged_cell("window", 0.01, 1)});
  const auto figures = reports::draw("accuracy_over_state", test::panels(result).at(0), order,
                                     reports::read_published(folder / "x.csv"));
  REQUIRE(figures.size() == 1);
  const Json colour = figures[0].spec["encoding"]["color"]["scale"];
  CHECK(colour["domain"] == Json({"softmax", "window"}));
  CHECK(colour["range"][1] != "#888888");
  CHECK_THAT(figures[0].caption, Contains("Not drawn, for want of a number: window (error)."));
}

TEST_CASE("a figure says of weights in float32 when their products were not", "[training]") {
  const auto subtitle = [](const char* autocast) {
    const Json result = trainings(
        {training_cell("latte", 0.1, 1, 0.5, 0.5, {{"dtype", "float32"}, {"autocast", autocast}})});
    const auto figure = reports::accuracy_figure(test::panels(result).at(0), order, {});
    return figure->subtitle + figure->spec["data"]["values"].dump();
  };
  CHECK_THAT(subtitle("bfloat16"), Contains(", float32 with autocast to bfloat16") &&
                                       Contains(R"("dtype":"float32 with autocast to bfloat16")"));
  CHECK_THAT(subtitle("off"), Contains(", float32") && !Contains("autocast to"));
}

TEST_CASE("curves have a point for each epoch, bins are powers of two", "[training]") {
  const Json result = some_trainings();
  const auto panel = test::panels(result).at(0);
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
  const auto figure = reports::loss_curves_figure(test::panels(result).at(0), order);
  REQUIRE(figure.has_value());
  const auto dots = rows_of(*figure, "dot");
  REQUIRE(dots.size() == 16);
  CHECK(dots[1]["x"] == 20);
  CHECK(dots[1]["y"] == 1.0);
  CHECK(figure->spec["layer"][0]["encoding"]["y"]["scale"]["type"] == "log");
  for (Json& cell : result["attnbench"]["cells"]) {
    if (cell.contains("training")) cell["training"]["curve"][3]["loss"] = 0.0;
  }
  const auto exact = reports::loss_curves_figure(test::panels(result).at(0), order);
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
  const auto panel = test::panels(result).at(0);
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
  const auto by_width = test::panels(result).at(0);
  REQUIRE(by_width.axis == "width");
  const auto together = reports::draw("learning_curves", by_width, order, {});
  REQUIRE(together.size() == 1);
  CHECK(rows_of(together[0], "dot").size() == 4 * 4);
}
