#include "reports/training/cost.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "tests/reports/training/figure_rows.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
using reports::Expense;
using result::CellRecord;
using Json = nlohmann::json;
using test::result_of;
using test::rows_of;
using test::some_trainings;
using test::training_cell;
using Cells = std::vector<CellRecord>;

namespace {

CellRecord cost_cell(const std::string& label, const Values& options, double seconds,
                     double bytes) {
  test::CellBuilder cell(label);
  cell.named("cost" + label + Json(options).dump()).length(64).set("batch", 32);
  cell.set("scope", "layer").took(seconds, "forward+backward");
  cell.timing["forward+backward"].interval = "range";
  cell.task_label = "cost";
  cell.implementation = "fused";
  cell.options = options;
  cell.memory["peak_bytes"] = bytes;
  return cell;
}

/// Latte at two sizes and softmax, trained and timed; linear trained alone.
Cells some_cells() {
  const Values few = {{"latents_total", 16}};
  const Values many = {{"latents_total", 64}};
  Cells cells;
  for (const auto& [label, options, accuracy] :
       {std::tuple{"softmax", Values(), 0.99}, std::tuple{"latte", few, 0.6},
        std::tuple{"latte", many, 0.8}, std::tuple{"linear", Values(), 0.7}}) {
    cells.push_back(training_cell(label, 0.01, 1, accuracy, accuracy));
    cells.back().options = options;
  }
  cells.push_back(cost_cell("softmax", {}, 5e-3, 1 << 22));
  cells.push_back(cost_cell("latte", few, 2e-3, 1 << 20));
  cells.push_back(cost_cell("latte", many, 6e-3, 1 << 21));
  return cells;
}

std::vector<reports::Figure> figures_of(const Cells& cells, Expense expense = Expense::time) {
  const auto panels = test::panels(result_of(cells));
  std::vector<const reports::Panel*> all;
  std::vector<const reports::Panel*> trained;
  for (const auto& panel : panels) {
    all.push_back(&panel);
    if (panel.task != "kernel") trained.push_back(&panel);
  }
  return reports::accuracy_over_expense_figures(expense, trained, all,
                                                {"softmax", "latte", "linear"});
}
std::vector<Json> time_dots(const Cells& cells) { return rows_of(figures_of(cells).at(0), "dot"); }

std::vector<reports::Figure> over_state(const result::Result& result,
                                        const std::vector<reports::PublishedRow>& published = {}) {
  const auto panels = test::panels(result);
  std::vector<const reports::Panel*> all;
  for (const auto& panel : panels) all.push_back(&panel);
  return reports::accuracy_over_state_figures(all, test::training_palette, published);
}

/// The words among the marks.
Json words_in(const reports::Figure& figure) {
  for (const Json& layer : figure.spec["layer"]) {
    if (layer.contains("data") && layer["data"].value("name", "") == "words") {
      return layer["data"]["values"];
    }
  }
  return Json::array();
}

}  // namespace

TEST_CASE("who stands on the front has its name there, in pictures of both widths", "[training]") {
  std::vector<std::tuple<bool, std::string, double>> named;
  for (const Json& row : words_in(figures_of(some_cells()).at(0))) {
    named.emplace_back(row["narrow"], row["words"], row["x"]);
    CHECK(row["series"] == row["words"]);  // and so its colour
  }
  // Not of latte's larger size, nor of linear, which has no cost.
  CHECK(named ==
        std::vector<std::tuple<bool, std::string, double>>{
            {false, "latte", 2}, {false, "softmax", 5}, {true, "latte", 2}, {true, "softmax", 5}});
  // Neighbours of one series have one name.
  Cells cells = some_cells();
  cells[2].metrics["accuracy"] = 0.995;
  CHECK(words_in(figures_of(cells).at(0)).size() == 6);
  cells[0].metrics["accuracy"] = 0.1;
  CHECK(words_in(figures_of(cells).at(0)).size() == 2);
  // No front, no names.
  cells[4].status = Status::disturbed;
  CHECK(words_in(figures_of(cells).at(0)).empty());
}

TEST_CASE("names on a front keep off each other", "[training]") {
  // A line of twelve points that are 10 pixels apart and rise by as much.
  Cells cells;
  for (int i = 0; i < 12; ++i) {
    const std::string name = "mechanism " + std::to_string(i);
    cells.push_back(training_cell(name, 0.01, 1, 0.5 + 0.03 * i, 0.5 + 0.03 * i));
    cells.push_back(cost_cell(name, {}, 1e-3 * std::pow(1.3, i), 1));
  }
  const auto panels = test::panels(result_of(cells));
  std::vector<const reports::Panel*> all, trained;
  for (const auto& panel : panels) {
    all.push_back(&panel);
    if (panel.task != "kernel") trained.push_back(&panel);
  }
  const auto figure =
      reports::accuracy_over_expense_figures(Expense::time, trained, all, reports::Palette(panels))
          .at(0);
  std::vector<std::pair<double, double>> feet;  // of the wide picture: where each line of words is
  for (const Json& row : words_in(figure)) {
    if (row["narrow"]) continue;
    const double x = 16 + 548 * std::log(row["x"].get<double>()) / std::log(std::pow(1.3, 11));
    const double left = x + row["dx"].get<double>() - (row["align"] == "right" ? 75 : 0);
    const double y = 340 * (1 - row["y"].get<double>() / 1.02) + row["dy"].get<double>();
    for (const auto& [other_left, other_y] : feet) {
      CHECK((std::abs(left - other_left) >= 70 || std::abs(y - other_y) >= 12));
    }
    feet.emplace_back(left, y);
  }
  CHECK(feet.size() == 12);
}

TEST_CASE("accuracy stands over the time or the memory that another task measured", "[training]") {
  const auto figures = figures_of(some_cells());
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
  const auto memory = figures_of(some_cells(), Expense::memory);
  REQUIRE(memory.size() == 1);
  const auto bytes = rows_of(memory[0], "dot");
  REQUIRE(bytes.size() == 3);
  CHECK(bytes[0]["x"].get<double>() == Approx(4));
  CHECK(bytes[1]["x"].get<double>() == Approx(1));
}

TEST_CASE("a training in bfloat16 is joined with a timing in bfloat16", "[training]") {
  Cells cells = some_cells();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    cells[i].settings["dtype"] = "float32";
    if (i < 4) cells[i].settings["autocast"] = "bfloat16";
  }
  CHECK(figures_of(cells).empty());
  cells[4].settings["dtype"] = "bfloat16";
  CHECK(time_dots(cells).size() == 1);
  for (std::size_t i = 0; i < 4; ++i) cells[i].settings["autocast"] = "off";
  CHECK(time_dots(cells).size() == 2);
}

TEST_CASE("a cost at another size, failed, of several passes or of decoding is none of a training",
          "[training]") {
  Cells cells = some_cells();
  CellRecord decoding = cells[4];
  decoding.id = "decode softmax";
  decoding.task = decoding.task_label = "decode";
  decoding.primary = "step";
  decoding.timing = {{"step", decoding.timing["forward+backward"]}};
  cells.push_back(decoding);
  CHECK(time_dots(cells).size() == 3);
  cells.pop_back();
  cells[4].settings["length"] = 128;
  cells[5].status = Status::wrong;
  CellRecord other = cells[6];
  other.settings["pass"] = "forward";
  cells.push_back(other);
  CHECK(figures_of(cells).empty());
}

TEST_CASE("a disturbed cost stands on no front, and makes way for no other pass", "[training]") {
  Cells cells = some_cells();
  cells[4].status = Status::disturbed;
  CHECK(time_dots(cells).size() == 2);
  for (const Json& row : time_dots(cells)) CHECK(row["series"] != "softmax");
  CHECK_THAT(figures_of(cells).at(0).caption,
             Contains("No front is drawn: softmax was disturbed") && Contains("not here: 2."));
  CHECK(rows_of(figures_of(cells).at(0), "front").empty());
  CellRecord other = cells[4];
  other.status = Status::ok;
  other.settings["pass"] = "forward";
  cells.push_back(other);
  CHECK(time_dots(cells).size() == 2);
}

TEST_CASE("accuracy over state has a front, and the reach of all windows as foretold",
          "[training]") {
  const auto figure = over_state(some_trainings()).at(0);
  const auto front = rows_of(figure, "front");  // of what nothing betters
  REQUIRE(front.size() == 2);
  CHECK(front[0]["x"] == 16);  // latte, not the window of as many bytes
  CHECK(front[0]["y"].get<double>() == Approx(0.72));
  CHECK(front[1]["x"] == 32);
  CHECK(front[1]["y"].get<double>() == Approx(0.96));
  const auto line = rows_of(figure, "predicted");
  REQUIRE(line.size() == 2);  // within the states that were measured, 16 and 32 KiB
  CHECK((line[0]["series"] == "window" && line[0]["x"] == 16 && line[0]["y"] == 0.39));
  CHECK((line[1]["x"] == 32 && line[1]["said"] == "0.800 with a window of 32 keys"));
  CHECK_THAT(figure.caption,
             Contains("predicted") && Contains("not trained") && !Contains("several blocks"));
  std::size_t labels = 0;
  for (const Json& row : words_in(figure)) {
    if (row["words"] != "one look-up into\na window, predicted") continue;
    ++labels;
    CHECK(row["y"] == 0.39);
    CHECK(row["align"] == "left");  // at 16 of 16 to 32 KiB: into the picture
  }
  CHECK(labels == 2);  // for a wide picture and for a narrow one
  // Windows of one data set share one line, and stacked ones are told of.
  result::Result several = some_trainings();
  CellRecord wider = several.cells[3];
  wider.label = "wider";
  wider.training->stacked = 2;
  wider.metrics["state_bytes"] = 65536;
  several.cells.push_back(wider);
  const auto shared = over_state(several).at(0);
  CHECK(rows_of(shared, "predicted").size() == 3);
  CHECK(rows_of(shared, "reach").size() == 2);
  CHECK_THAT(shared.caption, Contains("several blocks may reach farther"));
}

TEST_CASE("widths stand in one figure over state, other data in another", "[training]") {
  Cells cells;
  for (const int length : {64, 128}) {
    for (const int width : {32, 64}) {
      for (const double rate : {0.003, 0.01}) {
        const double accuracy = rate < 0.01 ? 0.5 : 0.01 * width;
        cells.push_back(training_cell("latte", rate, 1, accuracy, accuracy,
                                      {{"length", length}, {"width", width}}));
        cells.back().metrics["state_bytes"] = 128 * width;
      }
    }
  }
  const auto figures = over_state(result_of(cells));
  REQUIRE(figures.size() == 2);
  for (const auto& figure : figures) {
    const auto dots = rows_of(figure, "dot");
    REQUIRE(dots.size() == 2);
    CHECK((dots[0]["x"] == 4 && dots[0]["y"] == 0.5));  // each width has a rate of its own
    CHECK((dots[1]["x"] == 8 && dots[1]["y"] == 0.64));
  }
  CHECK_THAT(figures[0].subtitle, Contains("length=64"));
  CHECK_THAT(figures[1].subtitle, Contains("length=128"));
  CHECK(figures[0].name != figures[1].name);
}

TEST_CASE("where only states compare, the figure over them says it all", "[training]") {
  Cells cells;
  for (const int left : {15, 31}) {
    cells.push_back(training_cell("window", 0.003, 1, 0.5, 0.5)
                        .option("window", {{"left", left}, {"right", 0}}));
    cells.back().metrics["state_bytes"] = 512 * (left + 1);
    cells.push_back(
        training_cell("latte", 0.003, 1, 0.6, 0.6).option("latents_per_head", left + 1));
    cells.back().metrics["state_bytes"] = 256 * (left + 1);
  }
  const auto result = result_of(cells);
  REQUIRE(test::first_panel(result).axis == reports::state_bytes);
  CHECK(test::drawn("accuracy", result).empty());
  const auto figures = test::drawn("accuracy_over_state", result);
  REQUIRE(figures.size() == 1);
  CHECK(rows_of(figures[0], "dot").size() == 4);
}

TEST_CASE("published accuracies are hollow, by source, also of models that we do not have",
          "[training]") {
  const auto rows = test::published_in(
      "# source: A paper, Figure 2\n"
      "label,vocabulary,length,state_bytes,accuracy\n"
      "latte,,,8192,0.5\n"
      "stranger,,,65536,0.7\n"
      "latte,,64,,0.25\n"
      "latte,,128,,0.125\n"
      "stranger,8192,64,,0.3\n");
  const auto figure = over_state(some_trainings(), rows).at(0);
  CHECK_THAT(figure.caption, Contains("published numbers of A paper, Figure 2."));
  std::size_t layers = 0;
  for (const Json& layer : figure.spec["layer"]) {
    if (!layer.contains("data") || layer["data"].value("name", "") != "published") continue;
    ++layers;
    CHECK((layer["mark"].contains("strokeDash") || layer["mark"]["filled"] == false));
    const Json values = layer["data"]["values"];
    REQUIRE(values.size() == 2);
    CHECK((values[0]["series"] == "latte" && values[0]["x"] == 8));
    CHECK((values[1]["series"] == "stranger (published)" &&
           values[1]["source"] == "A paper, Figure 2"));
  }
  CHECK(layers == 2);
  const Json scale = figure.spec["encoding"]["color"]["scale"];
  CHECK(scale["domain"] == Json({"softmax", "window", "latte", "stranger (published)"}));
  CHECK(std::count(scale["range"].begin(), scale["range"].end(), "#888888") == 1);
  CHECK(scale["range"][3] == "#888888");

  // Along an axis; what says other settings than ours stays away.
  const auto along = test::drawn(
      "accuracy",
      result_of({training_cell("latte", 0.1, 1, 0.5, 0.5, {{"length", 64}, {"vocabulary", 256}}),
                 training_cell("latte", 0.1, 1, 0.4, 0.4, {{"length", 128}, {"vocabulary", 256}})}),
      rows);
  REQUIRE(along.size() == 1);
  CHECK_THAT(along[0].spec.dump(), Contains("0.125") && !Contains("stranger"));
}
