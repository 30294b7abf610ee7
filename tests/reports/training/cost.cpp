#include "reports/training/cost.hpp"

#include <algorithm>
#include <optional>

#include "reports/training/accuracy.hpp"
#include "tests/reports/tables/training_cells.hpp"
#include "tests/reports/training/some_trainings.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/timed_cell.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
using Json = nlohmann::json;
using namespace attnbench::test;

namespace {

Json cost_cell(const std::string& label, const Json& options, double seconds, double bytes) {
  Json cell = timed_cell("cost" + label + options.dump(), label, seconds, "forward+backward");
  cell["task_label"] = "cost";
  cell["implementation"] = "fused";
  cell["settings"] = {{"length", 64}, {"batch", 32}, {"scope", "layer"}};
  cell["options"] = options;
  cell["timing"]["forward+backward"]["interval"] = "range";
  cell["memory"]["peak_bytes"] = bytes;
  return cell;
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
  const auto panels = test::panels(result);
  std::vector<const result::Panel*> all;
  std::vector<const result::Panel*> trained;
  for (const auto& panel : panels) {
    all.push_back(&panel);
    if (panel.task != "kernel") trained.push_back(&panel);
  }
  return reports::accuracy_over_expense_figures(expense, trained, all,
                                                {"softmax", "latte", "linear"});
}

/// Of the first data set.
std::optional<reports::Figure> over_state(
    const Json& result, const std::vector<reports::PublishedRow>& published = {}) {
  const auto panels = test::panels(result);
  std::vector<const result::Panel*> all;
  for (const auto& panel : panels) all.push_back(&panel);
  auto figures = reports::accuracy_over_state_figures(all, order, published);
  if (figures.empty()) return std::nullopt;
  return figures.front();
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

TEST_CASE("a training in bfloat16 is joined with a timing in bfloat16", "[training]") {
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

TEST_CASE("a decoding at the length of a training is not its cost", "[training]") {
  std::vector<Json> cells = some_cells();
  Json decoding = cells[4];
  decoding["id"] = "decode softmax";
  decoding["task"] = decoding["task_label"] = "decode";
  decoding["primary"] = "step";
  decoding["timing"] = {{"step", decoding["timing"]["forward+backward"]}};
  cells.push_back(decoding);
  const auto figures = figures_of(cells, reports::Expense::time);
  REQUIRE(figures.size() == 1);
  CHECK(rows_of(figures[0], "dot").size() == 3);
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
  const auto panels = test::panels(result);
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
  const auto panel = test::panels(result).at(0);
  REQUIRE(panel.axis == result::state_bytes);
  CHECK(reports::draw("accuracy", panel, order, {}).empty());
  const auto figures = reports::draw("accuracy_over_state", panel, order, {});
  REQUIRE(figures.size() == 1);
  CHECK(rows_of(figures[0], "dot").size() == 4);
}

TEST_CASE("published accuracies are hollow, by source, also of models that we do not have",
          "[training]") {
  const TemporaryFolder folder;
  write_file(folder / "x.csv",
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
  const auto along = reports::accuracy_figure(test::panels(result).at(0), {"latte"}, rows);
  REQUIRE(along.has_value());
  CHECK_THAT(along->spec.dump(), Contains("0.125") && !Contains("stranger"));
}
