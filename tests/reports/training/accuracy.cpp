#include "reports/training/accuracy.hpp"

#include "reports/figures/spec.hpp"
#include "tests/reports/training/figure_rows.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
using result::CellRecord;
using Json = nlohmann::json;
using test::diverged_cell;
using test::result_of;
using test::rows_of;
using test::training_cell;

namespace {

reports::Figure only_figure(const std::string& name, const result::Result& result) {
  const auto figures = test::drawn(name, result);
  REQUIRE(figures.size() == 1);
  return figures[0];
}

}  // namespace

TEST_CASE("figures of trainings show every seed at the chosen learning rate", "[training]") {
  const auto accuracy = only_figure("accuracy", test::some_trainings());
  const auto dots = rows_of(accuracy, "dot");
  REQUIRE(dots.size() == 4);  // two seeds of softmax, one of each other
  CHECK((dots[0]["y"] == 0.98 && dots[0]["rate"] == "0.003" && dots[0]["x"] == "softmax"));
  CHECK(dots[1]["seed"] == "2");
  CHECK(rows_of(accuracy, "mean").empty());
  REQUIRE(rows_of(accuracy, "reach").size() == 1);
  CHECK(rows_of(accuracy, "reach")[0]["y"] == 0.39);
  CHECK_THAT(accuracy.caption,
             Contains("1 training did not end well") && !Contains("want of a number"));
  CHECK_THAT(accuracy.spec.dump(), Contains("guessing among the sequence's values"));
  // Names below an axis slope where they have no room side by side.
  const auto angle = [](const reports::Figure& figure) {
    return figure.spec["encoding"]["x"]["axis"]["labelAngle"].get<int>();
  };
  CHECK(angle(accuracy) == 0);
  const auto wordy =
      result_of({training_cell("latte with a convolution and a window", 0.003, 1, 0.9, 0.9),
                 training_cell("latte with a recurrence and a window", 0.003, 1, 0.9, 0.9)});
  CHECK(angle(only_figure("accuracy", wordy)) < 0);
}

TEST_CASE("the curve over learning rates stands beside its maximum", "[training]") {
  const auto figure = only_figure("accuracy_over_learning_rate", test::some_trainings());
  CHECK(rows_of(figure, "dot").size() == 5);
  const auto means = rows_of(figure, "mean");
  REQUIRE(means.size() == 4);
  CHECK(means[1]["y"].get<double>() == Approx(0.98));
  CHECK(figure.spec["encoding"]["x"]["scale"]["type"] == "log");
}

TEST_CASE("an axis of words has dots and their own chance, and no lines", "[training]") {
  auto hard = training_cell("a", 0.1, 1, 0.4, 0.3, {{"exercise", "copying"}});
  hard.training->chance = 0.1;
  const auto result =
      result_of({training_cell("a", 0.1, 1, 0.5, 0.5, {{"exercise", "recall"}}), hard}, "exercise");
  const auto figure = only_figure("accuracy", result);
  CHECK(rows_of(figure, "dot").size() == 2);
  CHECK(rows_of(figure, "mean").empty());
  const auto chances = rows_of(figure, "chance");
  REQUIRE(chances.size() == 2);
  CHECK((chances[0]["x"] == "copying" && chances[0]["y"] == 0.1));
  CHECK(figure.spec["encoding"]["x"]["type"] == "ordinal");
  CHECK(figure.spec["encoding"]["x"]["sort"] == Json({"recall", "copying"}));  // as planned
  // With one learning rate there was nothing to choose, and there is nothing to show.
  CHECK(test::drawn("accuracy_over_learning_rate", result).empty());
}

TEST_CASE("along an axis the means are joined, and without trainings there is nothing",
          "[training]") {
  const auto figure =
      only_figure("accuracy", result_of({training_cell("a", 0.1, 1, 0.5, 0.5, {{"length", 64}}),
                                         training_cell("a", 0.1, 1, 0.4, 0.4, {{"length", 128}})}));
  CHECK(rows_of(figure, "mean").size() == 2);
  CHECK(figure.spec["encoding"]["x"]["title"] == "length T (tokens)");
  for (const char* name :
       {"accuracy", "accuracy_over_state", "accuracy_over_time", "accuracy_over_memory",
        "accuracy_over_learning_rate", "learning_curves", "loss_curves", "accuracy_by_look_back"}) {
    CHECK(test::drawn(name, result_of({diverged_cell("a", 0.1, 1)})).empty());
  }
}

TEST_CASE("a series without a mark is left out of the legend, and the caption names it",
          "[training]") {
  const auto result = result_of(
      {training_cell("softmax", 0.001, 1, 0.9, 0.91), diverged_cell("window", 0.01, 1),
       diverged_cell("window", 0.1, 1), training_cell("latte", 0.001, 1, 0.7, 0.72),
       diverged_cell("latte", 0.01, 1), diverged_cell("luna", 0.01, 1).ended(Status::unsupported)});
  for (const char* name : {"accuracy", "accuracy_over_state", "learning_curves", "loss_curves",
                           "accuracy_over_learning_rate", "accuracy_by_look_back"}) {
    INFO(name);
    const auto figure = only_figure(name, result);
    const Json drawn = {"softmax", "latte"};
    CHECK(figure.spec["encoding"]["color"]["scale"]["domain"] == drawn);
    for (const Json& layer : figure.spec["layer"]) {
      if (!layer.contains("encoding") || !layer["encoding"].contains("shape")) continue;
      CHECK(layer["encoding"]["shape"]["scale"]["domain"] == drawn);
    }
    // As many colours as series, and latte's is its own although the window before it is gone.
    const Json range = figure.spec["encoding"]["color"]["scale"]["range"];
    REQUIRE(range.size() == 2);
    const auto all = reports::colour_encoding({"latte"}, test::training_palette);
    CHECK(range[1] == all["scale"]["range"][0]);
    CHECK_THAT(figure.caption, Contains("4 trainings did not end well and are not drawn") &&
                                   Contains("Not drawn, for want of a number: window (error), "
                                            "luna (unsupported)."));
  }
  // A published number keeps its name there.
  const auto published = test::drawn(
      "accuracy_over_state",
      result_of({training_cell("softmax", 0.001, 1, 0.9, 0.91), diverged_cell("window", 0.01, 1)}),
      test::published_in("# source: A paper, Figure 2\nlabel,vocabulary,length,state_bytes,"
                         "accuracy\nwindow,,,8192,0.5\n"));
  REQUIRE(published.size() == 1);
  const Json colour = published[0].spec["encoding"]["color"]["scale"];
  CHECK(colour["domain"] == Json({"softmax", "window"}));
  CHECK(colour["range"][1] != "#888888");
  CHECK_THAT(published[0].caption, Contains("Not drawn, for want of a number: window (error)."));
}

TEST_CASE("a figure says of weights in float32 when their products were not", "[training]") {
  const auto said = [](const char* autocast) {
    const auto figure = only_figure(
        "accuracy", result_of({training_cell("latte", 0.1, 1, 0.5, 0.5,
                                             {{"dtype", "float32"}, {"autocast", autocast}})}));
    return figure.subtitle + figure.spec["data"]["values"].dump();
  };
  CHECK_THAT(said("bfloat16"), Contains(", float32 with autocast to bfloat16") &&
                                   Contains(R"("dtype":"float32 with autocast to bfloat16")"));
  CHECK_THAT(said("off"), Contains(", float32") && !Contains("autocast to"));
}

TEST_CASE("curves have a point for each epoch, bins are powers of two", "[training]") {
  result::Result result = test::some_trainings();
  CHECK(rows_of(only_figure("learning_curves", result), "dot").size() == 16);
  const auto bins = rows_of(only_figure("accuracy_by_look_back", result), "dot");
  REQUIRE(bins.size() == 6);
  CHECK(bins[0]["x"] == 4);  // distances 3 and 4
  CHECK(bins[0]["y"].get<double>() == Approx(250.0 / 400));
  CHECK(bins[1]["x"] == 32);
  CHECK(bins[1]["y"].get<double>() == Approx(0.1));
  const auto losses = only_figure("loss_curves", result);
  const auto dots = rows_of(losses, "dot");
  REQUIRE(dots.size() == 16);
  CHECK((dots[1]["x"] == 20 && dots[1]["y"] == 1.0));
  CHECK(losses.spec["layer"][0]["encoding"]["y"]["scale"]["type"] == "log");
  for (CellRecord& cell : result.cells) {
    if (cell.training) cell.training->curve[3].loss = 0;
  }
  // No logarithm of 0.
  CHECK(rows_of(only_figure("loss_curves", result), "dot").size() == 12);
}

TEST_CASE("each data set has curves of its own, each width or size of an option has not",
          "[training]") {
  std::vector<CellRecord> cells;
  for (const char* exercise : {"recall", "copying"}) {
    for (const char* label : {"latte", "softmax"}) {
      for (const double rate : {0.01, 0.1}) {
        cells.push_back(training_cell(label, rate, 1, 0.5 + rate, 0.5, {{"exercise", exercise}}));
      }
    }
  }
  const auto result = result_of(cells, "exercise");
  for (const std::string name :
       {"learning_curves", "loss_curves", "accuracy_over_learning_rate", "accuracy_by_look_back"}) {
    INFO(name);
    const auto figures = test::drawn(name, result);
    REQUIRE(figures.size() == 2);
    for (std::size_t i = 0; i < 2; ++i) {
      const std::string exercise = i == 0 ? "recall" : "copying";
      CHECK_THAT(figures[i].subtitle, Contains("exercise=" + exercise));
      CHECK(figures[i].name == "mqar_" + name + "_" + exercise);
      if (name != "learning_curves") continue;
      const auto dots = rows_of(figures[i], "dot");
      REQUIRE(dots.size() == 2 * 4);  // of the better learning rate, four epochs
      for (const Json& dot : dots) {
        CHECK(dot["rate"] == "0.1");
        CHECK_THAT(dot["id"].get<std::string>(), Contains(exercise));
      }
    }
  }
  // All of them are together where the axis is the model's.
  for (CellRecord& cell : cells) {
    cell.settings["width"] = cell.settings["exercise"] == "recall" ? 32 : 64;
    cell.settings.erase("exercise");
  }
  const auto by_width = result_of(cells, "width");
  REQUIRE(test::first_panel(by_width).axis == "width");
  CHECK(rows_of(only_figure("learning_curves", by_width), "dot").size() == 4 * 4);
}
