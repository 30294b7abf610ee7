#include "reports/training/accuracy.hpp"

#include <algorithm>

#include "reports/training/curves.hpp"
#include "reports/training/state.hpp"
#include "tests/harness/result/training_cells.hpp"
#include "tests/reports/training/rows_of.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using attnbench::test::diverged_cell;
using attnbench::test::rows_of;
using attnbench::test::training_cell;
using attnbench::test::trainings;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

Json some_trainings() {
  Json window = training_cell("window", 0.003, 1, 0.4, 0.41);
  window["training"]["reach"] = 0.39;
  window["training"]["stacked"] = 1;
  window["training"]["reach_line"] = {{"keys", {1, 8, 16, 32, 64}},
                                      {"state_bytes", {1024, 8192, 16384, 32768, 65536}},
                                      {"reach", {0.0, 0.2, 0.39, 0.8, 1.0}}};
  return trainings({training_cell("softmax", 0.001, 1, 0.9, 0.91),
                    training_cell("softmax", 0.003, 1, 0.99, 0.98),
                    training_cell("softmax", 0.003, 2, 0.97, 0.94), window,
                    training_cell("latte", 0.003, 1, 0.7, 0.72), diverged_cell("latte", 0.01, 1)});
}

const std::vector<std::string> order{"softmax", "window", "latte"};

/// Of the first data set.
std::optional<reports::Figure> over_state(
    const Json& result, const std::vector<reports::PublishedRow>& published = {}) {
  const auto panels = result::panels(result);
  std::vector<const result::Panel*> all;
  for (const auto& panel : panels) all.push_back(&panel);
  auto figures = reports::accuracy_over_state_figures(all, order, published);
  if (figures.empty()) return std::nullopt;
  return figures.front();
}

}  // namespace

TEST_CASE("figures of trainings show every seed at the chosen learning rate", "[training]") {
  const Json result = some_trainings();
  const auto panel = result::panels(result).at(0);
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

TEST_CASE("accuracy over state has a front of what nothing betters", "[training]") {
  const Json result = some_trainings();
  const auto figure = over_state(result);
  REQUIRE(figure.has_value());
  const auto front = rows_of(*figure, "front");
  REQUIRE(front.size() == 2);
  CHECK(front[0]["x"] == 16);  // latte, not the window of as many bytes
  CHECK(front[0]["y"].get<double>() == Approx(0.72));
  CHECK(front[1]["x"] == 32);
  CHECK(front[1]["y"].get<double>() == Approx(0.96));
}

TEST_CASE("the reach of all windows is a line over state, labelled as foretold", "[training]") {
  const Json result = some_trainings();
  const auto figure = over_state(result);
  REQUIRE(figure.has_value());
  const auto line = rows_of(*figure, "predicted");
  REQUIRE(line.size() == 2);  // within the states that were measured, 16 and 32 KiB
  CHECK(line[0]["series"] == "window");
  CHECK(line[0]["x"] == 16);
  CHECK(line[0]["y"] == 0.39);
  CHECK(line[1]["x"] == 32);
  CHECK(line[1]["said"] == "0.800 with a window of 32 keys");
  CHECK_THAT(figure->caption,
             Contains("predicted") && Contains("not trained") && !Contains("several blocks"));
  bool labelled = false;
  for (const Json& layer : figure->spec["layer"]) {
    if (!layer.contains("data") || !layer.contains("mark") || layer["mark"]["type"] != "text") {
      continue;
    }
    labelled = true;
    CHECK(layer["data"]["values"][0]["words"] == "one look-up into\na window, predicted");
    CHECK(layer["data"]["values"][0]["y"] == 0.39);
    CHECK(layer["mark"]["align"] == "left");  // at 16 of 16 to 32 KiB: into the picture
  }
  CHECK(labelled);
}

TEST_CASE("windows of one data set share one line, and stacked ones are told of", "[training]") {
  Json cells = some_trainings()["attnbench"]["cells"];
  Json wider = cells[3];
  wider["label"] = "wider";
  wider["training"]["stacked"] = 2;
  wider["metrics"]["state_bytes"] = 65536;
  cells.push_back(wider);
  const auto figure = over_state(trainings(cells));
  REQUIRE(figure.has_value());
  CHECK(rows_of(*figure, "predicted").size() == 3);
  CHECK(rows_of(*figure, "reach").size() == 2);
  CHECK_THAT(figure->caption, Contains("several blocks may reach farther"));
}

TEST_CASE("widths stand in one figure over state, other data in another", "[training]") {
  std::vector<Json> cells;
  for (const int length : {64, 128}) {
    for (const int width : {32, 64}) {
      Json cell =
          training_cell("latte", 0.003, 1, 0.5, 0.5, {{"length", length}, {"width", width}});
      cell["metrics"]["state_bytes"] = 128 * width;
      cells.push_back(cell);
      cell = training_cell("latte", 0.01, 1, 0.01 * width, 0.01 * width,
                           {{"length", length}, {"width", width}});
      cell["metrics"]["state_bytes"] = 128 * width;
      cells.push_back(cell);
    }
  }
  const Json result = trainings(cells);
  const auto panels = result::panels(result);
  REQUIRE(panels.size() == 2);  // one for each width
  const auto figures =
      reports::accuracy_over_state_figures({&panels[0], &panels[1]}, {"latte"}, {});
  REQUIRE(figures.size() == 2);
  for (const auto& figure : figures) {
    const auto dots = rows_of(figure, "dot");
    REQUIRE(dots.size() == 2);
    CHECK(dots[0]["x"] == 4);
    CHECK(dots[0]["y"] == 0.5);  // each width has a learning rate of its own
    CHECK(dots[1]["x"] == 8);
    CHECK(dots[1]["y"] == 0.64);
  }
  CHECK_THAT(figures[0].subtitle, Contains("length=64"));
  CHECK_THAT(figures[1].subtitle, Contains("length=128"));
  CHECK(figures[0].name != figures[1].name);
}

TEST_CASE("where only states compare, the figure over them says it all", "[training]") {
  std::vector<Json> cells;
  for (const int left : {15, 31}) {
    Json cell = training_cell("window", 0.003, 1, 0.5, 0.5);
    cell["options"] = {{"window", {{"left", left}, {"right", 0}}}};
    cell["metrics"]["state_bytes"] = 512 * (left + 1);
    cells.push_back(cell);
    cell = training_cell("latte", 0.003, 1, 0.6, 0.6);
    cell["options"] = {{"latents_per_head", left + 1}};
    cell["metrics"]["state_bytes"] = 256 * (left + 1);
    cells.push_back(cell);
  }
  const Json result = trainings(cells);
  const auto panel = result::panels(result).at(0);
  REQUIRE(panel.axis == result::state_bytes);
  CHECK(reports::draw("accuracy", panel, order, {}).empty());
  const auto figures = reports::draw("accuracy_over_state", panel, order, {});
  REQUIRE(figures.size() == 1);
  CHECK(rows_of(figures[0], "dot").size() == 4);
}

TEST_CASE("published accuracies are hollow, by source, also of models that we do not have",
          "[training]") {
  const attnbench::test::TemporaryFolder folder;
  attnbench::test::write_file(folder / "x.csv",
                              "# source: A paper, Figure 2\n"
                              "label,vocabulary,length,state_bytes,accuracy\n"
                              "latte,,,8192,0.5\n"
                              "stranger,,,65536,0.7\n"
                              "latte,,64,,0.25\n"
                              "latte,,128,,0.125\n"
                              "stranger,8192,64,,0.3\n");
  const auto rows = reports::read_published(folder / "x.csv");
  CHECK(rows[0].source == "A paper, Figure 2");
  const auto figure = over_state(some_trainings(), rows);
  REQUIRE(figure.has_value());
  CHECK_THAT(figure->caption, Contains("published numbers of A paper, Figure 2."));
  std::size_t layers = 0;
  for (const Json& layer : figure->spec["layer"]) {
    if (!layer.contains("data") || layer["data"].value("name", "") != "published") continue;
    ++layers;
    CHECK((layer["mark"].contains("strokeDash") || layer["mark"]["filled"] == false));
    const Json values = layer["data"]["values"];
    REQUIRE(values.size() == 2);
    CHECK(values[0]["series"] == "latte");
    CHECK(values[0]["x"] == 8);
    CHECK(values[1]["series"] == "stranger (published)");
    CHECK(values[1]["source"] == "A paper, Figure 2");
  }
  CHECK(layers == 2);
  for (const Json& row : rows_of(*figure, "dot")) CHECK(row["series"] != "stranger (published)");
  const Json domain = figure->spec["encoding"]["color"]["scale"]["domain"];
  CHECK(domain == Json({"softmax", "window", "latte", "stranger (published)"}));
  const Json colours = figure->spec["encoding"]["color"]["scale"]["range"];
  CHECK(std::count(colours.begin(), colours.end(), "#888888") == 1);
  CHECK(colours[3] == "#888888");

  // Along an axis; what says other settings than ours stays away.
  const Json result =
      trainings({training_cell("latte", 0.1, 1, 0.5, 0.5, {{"length", 64}, {"vocabulary", 256}}),
                 training_cell("latte", 0.1, 1, 0.4, 0.4, {{"length", 128}, {"vocabulary", 256}})});
  const auto along = reports::accuracy_figure(result::panels(result).at(0), {"latte"}, rows);
  REQUIRE(along.has_value());
  CHECK_THAT(along->spec.dump(), Contains("0.125") && !Contains("stranger"));
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
  const auto figure = reports::accuracy_figure(result::panels(result).at(0), {"a"}, {});
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
  CHECK(reports::draw("accuracy_over_learning_rate", result::panels(result).at(0), {"a"}, {})
            .empty());
}

TEST_CASE("along an axis the means are joined, and without trainings there is nothing",
          "[training]") {
  const Json result = trainings({training_cell("a", 0.1, 1, 0.5, 0.5, {{"length", 64}}),
                                 training_cell("a", 0.1, 1, 0.4, 0.4, {{"length", 128}})});
  const auto figure = reports::accuracy_figure(result::panels(result).at(0), order, {});
  REQUIRE(figure.has_value());
  CHECK(rows_of(*figure, "mean").size() == 2);
  CHECK(figure->spec["encoding"]["x"]["title"] == "length T (tokens)");
  const Json failed = trainings({diverged_cell("a", 0.1, 1)});
  const auto panel = result::panels(failed).at(0);
  for (const char* name :
       {"accuracy", "accuracy_over_state", "accuracy_over_time", "accuracy_over_memory",
        "accuracy_over_learning_rate", "learning_curves", "loss_curves", "accuracy_by_look_back"}) {
    CHECK(reports::draw(name, panel, order, {}).empty());
  }
}
